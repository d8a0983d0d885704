// A file includes what it uses, itself or through headers of the tree. Precompiled headers and
// unity builds would hide that it does not, until somebody builds without them.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/structure/source_tree.h"

namespace chord::structure {
namespace {

struct Use {
  std::string_view word;
  std::string_view header;
};

// Of the headers that are precompiled, what most files would use them for.
constexpr Use kUses[] = {
    {"std::any_of", "algorithm"},
    {"std::all_of", "algorithm"},
    {"std::clamp", "algorithm"},
    {"std::find_if", "algorithm"},
    {"std::max", "algorithm"},
    {"std::min", "algorithm"},
    {"std::sort", "algorithm"},
    {"std::atomic", "atomic"},
    {"std::from_chars", "charconv"},
    {"std::to_chars", "charconv"},
    {"std::chrono", "chrono"},
    {"std::int32_t", "cstdint"},
    {"std::int64_t", "cstdint"},
    {"std::uint16_t", "cstdint"},
    {"std::uint32_t", "cstdint"},
    {"std::uint64_t", "cstdint"},
    {"std::filesystem", "filesystem"},
    {"std::function", "functional"},
    {"std::ifstream", "fstream"},
    {"std::ofstream", "fstream"},
    {"std::make_shared", "memory"},
    {"std::make_unique", "memory"},
    {"std::map", "map"},
    {"std::shared_ptr", "memory"},
    {"std::unique_ptr", "memory"},
    {"std::lock_guard", "mutex"},
    {"std::mutex", "mutex"},
    {"std::unique_lock", "mutex"},
    {"std::nullopt", "optional"},
    {"std::optional", "optional"},
    {"std::mt19937", "random"},
    {"std::set", "set"},
    {"std::string", "string"},
    {"std::to_string", "string"},
    {"std::string_view", "string_view"},
    {"std::thread", "thread"},
    {"std::this_thread", "thread"},
    {"std::exchange", "utility"},
    {"std::vector", "vector"},
    {"fmt::format", "fmt/format.h"},
    {"CLI::App", "CLI/CLI.hpp"},
    {"EXPECT_EQ", "gtest/gtest.h"},
    {"EXPECT_TRUE", "gtest/gtest.h"},
};

using IncludesByPath = std::map<std::string, std::vector<Include>>;

IncludesByPath includes_of_tree() {
  IncludesByPath found;
  for (const SourceFile& file : source_files())
    if (file.is_cpp()) found[file.path] = includes_of(file);
  return found;
}

// The angle includes of a file and of all headers of the tree that it reaches.
void collect(const std::string& path, const IncludesByPath& tree, std::set<std::string>& seen,
             std::set<std::string, std::less<>>& headers) {
  if (!seen.insert(path).second) return;
  const auto own = tree.find(path);
  if (own == tree.end()) return;
  for (const Include& include : own->second) {
    if (!include.quoted) {
      headers.insert(include.name);
    } else {
      collect(include.name, tree, seen, headers);
      collect("include/" + include.name, tree, seen, headers);
    }
  }
}

std::string missing_headers(const std::string& text,
                            const std::set<std::string, std::less<>>& has) {
  const std::string code = code_of(text);
  std::string missing;
  for (const Use& use : kUses)
    if (!has.contains(use.header) && has_word(code, use.word))
      missing += std::string(use.word) + " wants <" + std::string(use.header) + "> ";
  return missing;
}

TEST(OwnIncludes, AMissingOneIsNamed) {
  EXPECT_EQ(missing_headers("std::vector<int> a;", {"string"}), "std::vector wants <vector> ");
  EXPECT_EQ(missing_headers("std::vector<int> a;", {"vector"}), "");
  EXPECT_EQ(missing_headers("// std::vector\nmy_std::vectors a;", {}), "");
}

TEST(OwnIncludes, EveryFileHasThoseOfWhatItUses) {
  const IncludesByPath tree = includes_of_tree();
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp() || ends_with(file.path, ".cuh")) continue;
    std::set<std::string> seen;
    std::set<std::string, std::less<>> headers;
    collect(file.path, tree, seen, headers);
    EXPECT_EQ(missing_headers(file.text, headers), "") << file.path;
  }
}

}  // namespace
}  // namespace chord::structure
