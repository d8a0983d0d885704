// The embedded device text is closed: every include names an embedded file, so the compiler needs
// no include path and no toolkit header.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "kernels/embedded.h"
#include "tests/structure/source_tree.h"

namespace chord::structure {
namespace {

using kernels::embedded_file_count;
using kernels::embedded_files;
using kernels::EmbeddedFile;

SourceFile as_source(const EmbeddedFile& file) {
  return {file.name, std::string(file.text, file.size)};
}

TEST(DeviceText, IncludesOnlyItself) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < embedded_file_count; ++i) names.insert(embedded_files[i].name);
  ASSERT_GT(names.size(), 5u);
  for (std::size_t i = 0; i < embedded_file_count; ++i)
    for (const Include& include : includes_of(as_source(embedded_files[i])))
      EXPECT_TRUE(include.quoted && names.count(include.name) == 1)
          << embedded_files[i].name << ":" << include.line << " includes " << include.name;
}

TEST(DeviceText, HasNamesOfTheAbiAndTheKernelsOnly) {
  for (std::size_t i = 0; i < embedded_file_count; ++i) {
    const std::string name = embedded_files[i].name;
    EXPECT_TRUE(starts_with(name, "chord/abi/") || starts_with(name, "kernels/")) << name;
  }
}

TEST(DeviceText, IsTheTreesOwnText) {
  std::map<std::string, std::string> on_disk, embedded;
  for (const SourceFile& file : source_files()) {
    if (starts_with(file.path, "include/chord/abi/"))
      on_disk[file.path.substr(std::string("include/").size())] = file.text;
    if (starts_with(file.path, "kernels/") && ends_with(file.path, ".cuh"))
      on_disk[file.path] = file.text;
  }
  for (std::size_t i = 0; i < embedded_file_count; ++i) {
    const SourceFile file = as_source(embedded_files[i]);
    embedded[file.path] = file.text;
  }
  for (const auto& [path, text] : on_disk) EXPECT_TRUE(embedded[path] == text) << path;
  EXPECT_EQ(embedded.size(), on_disk.size());
}

}  // namespace
}  // namespace chord::structure
