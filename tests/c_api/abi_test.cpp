// The layout of chord.h against tests/golden/c_abi.txt: a difference there is a change of the ABI,
// which raises CHORD_ABI_VERSION unless it only adds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "tests/c_api/abi_layout.h"

namespace chord::c_api_test {
namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> compiled_lines() {
  std::vector<std::string> lines;
  for (const AbiField& f : abi_fields())
    lines.push_back(fmt::format("{}.{} at {}, {} bytes", f.type, f.name, f.offset, f.bytes));
  for (const AbiEnumerator& e : abi_enumerators())
    lines.push_back(fmt::format("{} = {}", e.name, e.value));
  return lines;
}

TEST(Abi, IsTheRecordedOne) {
  const std::vector<std::string> compiled = compiled_lines();
  const std::vector<std::string> golden = lines_of(CHORD_SOURCE_DIR "/tests/golden/c_abi.txt");
  const std::set<std::string> now(compiled.begin(), compiled.end());
  const std::set<std::string> then(golden.begin(), golden.end());
  EXPECT_GT(then.size(), 300u);
  for (const std::string& line : compiled) EXPECT_EQ(then.count(line), 1u) << "new: " << line;
  for (const std::string& line : golden) EXPECT_EQ(now.count(line), 1u) << "gone: " << line;
}

// No struct has padding, so a field that the list lacks leaves a hole.
TEST(Abi, ListHasEveryField) {
  std::size_t end = 0;
  const AbiField* last = nullptr;
  for (const AbiField& f : abi_fields()) {
    if (last == nullptr || f.type != last->type) {
      if (last != nullptr) {
        EXPECT_EQ(end, last->struct_bytes) << last->type;
      }
      end = 0;
    }
    EXPECT_EQ(f.offset, end) << f.type << " lacks what is in front of " << f.name;
    end = f.offset + f.bytes;
    last = &f;
  }
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(end, last->struct_bytes) << last->type;
}

// Every struct and enumerator that the header defines.
TEST(Abi, ListHasEveryStructAndEnumerator) {
  std::set<std::string> listed;
  for (const AbiField& f : abi_fields()) listed.insert(f.type);
  for (const AbiEnumerator& e : abi_enumerators()) listed.insert(e.name);
  const std::regex struct_end("^\\} (chord_\\w+_t);$"), enumerator("(CHORD_[A-Z0-9_]+) = -?[0-9]+");
  bool is_enum = false;
  std::size_t structs = 0;
  for (const std::string& line : lines_of(CHORD_SOURCE_DIR "/include/chord/chord.h")) {
    std::smatch match;
    if (line.rfind("typedef ", 0) == 0) is_enum = line.rfind("typedef enum ", 0) == 0;
    for (std::string rest = line; is_enum && std::regex_search(rest, match, enumerator);
         rest = match.suffix())
      EXPECT_EQ(listed.count(match[1]), 1u) << match[1];
    if (is_enum || !std::regex_match(line, match, struct_end)) continue;
    ++structs;
    EXPECT_EQ(listed.count(match[1]), 1u) << match[1];
  }
  EXPECT_EQ(structs, 27u);
}

}  // namespace
}  // namespace chord::c_api_test
