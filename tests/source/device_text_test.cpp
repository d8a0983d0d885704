// Which device files a kernel is made of, and that the digest sees every one of their characters
// and none of any other file.
#include "src/source/device_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/source/gemm_source.h"

namespace chord::source {
namespace {

const std::vector<DeviceFile> kFiles{
    {"a.cuh", "#include \"b.h\"\nint a;\n"},
    {"b.h", "#pragma once\n#include \"c.h\"\nint b;\n"},
    {"c.h", "#include \"b.h\"\nint c;\n"},  // a circle
    {"other.cuh", "int other;\n"},
};

std::vector<std::string> names(const std::vector<DeviceFile>& files) {
  std::vector<std::string> all;
  for (const DeviceFile& file : files) all.emplace_back(file.name);
  return all;
}

std::vector<DeviceFile> included(std::string_view source,
                                 const std::vector<DeviceFile>& files = kFiles) {
  const auto found = included_files(source, files);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : std::vector<DeviceFile>{};
}

std::string gemm_text() { return gemm_source({}, {.n = 4096, .k = 7168}); }

TEST(IncludedFiles, FollowIncludesAndSortByName) {
  const std::vector<std::string> expected{"a.cuh", "b.h", "c.h"};
  EXPECT_EQ(names(included("#include \"a.cuh\"\n")), expected);
}

TEST(IncludedFiles, OfNothingAreNone) { EXPECT_TRUE(included("int x;\n").empty()); }

TEST(IncludedFiles, LookOnlyAtLinesThatBeginWithInclude) {
  EXPECT_TRUE(included("// see #include \"a.cuh\"\n").empty());
  EXPECT_EQ(included("int x;\n#include \"c.h\"\n").size(), 2u);
}

TEST(IncludedFiles, RefuseAFileThatIsNotEmbedded) {
  const auto missing = included_files("#include \"a.cuh\"\n#include \"cuda_bf16.h\"\n", kFiles);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("cuda_bf16.h"), std::string::npos);
}

TEST(IncludedFiles, OutliveTheSource) {
  std::vector<DeviceFile> files;
  {
    std::string source = "#include \"b.h\"\n";
    source.append(100, ' ');
    files = included(source);
  }
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name.data(), kFiles[1].name.data());
}

TEST(IncludedFiles, OfAGemmAreClosed) {
  const auto files = included(gemm_text(), embedded_device_files());
  ASSERT_FALSE(files.empty());
  for (const DeviceFile& file : files)
    EXPECT_EQ(names(included(file.text, files)),
              names(included(file.text, embedded_device_files())))
        << file.name;
  const auto all = names(files);
  EXPECT_NE(std::find(all.begin(), all.end(), "kernels/moe_gemm/moe_gemm.cuh"), all.end());
  EXPECT_NE(std::find(all.begin(), all.end(), "chord/abi/schedule.h"), all.end());
}

TEST(IncludedFiles, OfAGemmLeaveThePackerOut) {
  for (const DeviceFile& file : included(gemm_text(), embedded_device_files()))
    EXPECT_EQ(file.name.find("kernels/pack/"), std::string_view::npos) << file.name;
}

TEST(Digest, IsOneAndTheSameForTheSameText) {
  EXPECT_EQ(digest(included("#include \"a.cuh\"\n")), digest(included("#include \"a.cuh\"\n")));
  EXPECT_EQ(digest(kFiles).size(), 32u);
}

TEST(Digest, ChangesWithOneCharacterOfAnyIncludedFile) {
  const std::string text = gemm_text();
  const std::vector<DeviceFile> embedded = embedded_device_files();
  const std::string before = digest(included(text, embedded));
  const auto parts = names(included(text, embedded));
  for (std::size_t i = 0; i < embedded.size(); ++i) {
    std::string changed(embedded[i].text);
    changed.push_back('\n');
    std::vector<DeviceFile> files = embedded;
    files[i].text = changed;
    const bool is_part =
        std::find(parts.begin(), parts.end(), std::string(files[i].name)) != parts.end();
    EXPECT_EQ(digest(included(text, files)) != before, is_part) << files[i].name;
  }
}

TEST(Digest, KeepsNamesAndTextsApart) {
  EXPECT_NE(digest({{"ab", "c"}}), digest({{"a", "bc"}}));
  EXPECT_NE(digest({{"a", "b"}, {"c", "d"}}), digest({{"a", "bc"}, {"", "d"}}));
  EXPECT_NE(digest({}), digest({{"", ""}}));
}

}  // namespace
}  // namespace chord::source
