// A cache folder as a sum: entries, schemas, and what is no entry.
#include <gtest/gtest.h>

#include <filesystem>

#include "cache/compilers.h"
#include "tests/cache/inspect_fixture.h"

namespace chord::cache {
namespace {

namespace fs = std::filesystem;

TEST_F(InspectTest, TheSumCountsByArchitectureAndCompiler) {
  fill({make_key("one"), make_key("two")});
  const CacheKey third = make_key("three", "sm_100a");
  Entry entry = make_entry(third);
  entry.arch = "sm_100a";
  entry.compiler = "NVRTC 12.9.1";
  put(path_of(third), serialize(entry));
  const auto summary = inspector().summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->entries.files, 3u);
  EXPECT_EQ(summary->problems, 0u);
  EXPECT_EQ(summary->by_arch.at("sm_90a").files, 2u);
  EXPECT_EQ(summary->by_arch.at("sm_100a").bytes, fs::file_size(path_of(third)));
  EXPECT_EQ(summary->by_compiler.at("NVRTC 12.9.1").files, 1u);
  EXPECT_LE(*summary->oldest_use_ns, *summary->newest_use_ns);
}

TEST_F(InspectTest, TheSumCountsEverySchema) {
  const CacheKey key = make_key("source");
  fill({key});
  put(root() + "/v0/" + key.name.substr(0, 2) + "/" + key.name, "old");
  put(root() + "/v99/" + key.name.substr(0, 2) + "/" + key.name, "newer");
  put(root() + "/version/ab/x", "of something else");
  const auto summary = inspector().summary();
  ASSERT_TRUE(summary.ok());
  ASSERT_EQ(summary->schemas.size(), 3u);
  EXPECT_EQ(summary->schemas[0].schema, 0);
  EXPECT_EQ(summary->schemas[0].usage.files, 1u);
  EXPECT_EQ(summary->schemas[0].usage.bytes, 3u);
  EXPECT_EQ(summary->schemas[1].schema, kSchemaVersion);
  EXPECT_EQ(summary->schemas[2].schema, 99);
  EXPECT_EQ(summary->entries.files, 1u);
}

TEST_F(InspectTest, TheSumCountsWhatIsNoEntry) {
  const CacheKey key = make_key("source");
  fill({key});
  put(layout().shard(key.name) + "/.tmp-1", "half");
  put(layout().pins() + "/.tmp-2", "half");
  put(layout().bad(key.name), "damaged");
  put(layout().lock(key.name), "pid 1 (x) on node7 since noon\n");
  ASSERT_FALSE(record_compiler(layout(), "NVRTC 13.0.88", files, clock));
  const auto summary = inspector().summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->entries.files, 1u);
  EXPECT_EQ(summary->temporaries.files, 2u);
  EXPECT_EQ(summary->bad.files, 1u);
  EXPECT_EQ(summary->bad.bytes, 7u);
  ASSERT_EQ(summary->locks.size(), 1u);
  EXPECT_EQ(summary->locks[0].key, key.name);
  EXPECT_NE(summary->locks[0].owner.find("node7"), std::string::npos);
  ASSERT_EQ(summary->recorded.size(), 1u);
  EXPECT_EQ(summary->recorded[0].identity, "NVRTC 13.0.88");
}

TEST_F(InspectTest, TheSumCountsProblemsOnce) {
  const CacheKey key = make_key("source");
  fill({key, make_key("other")});
  fs::resize_file(path_of(key), 10);
  const auto summary = inspector().summary();
  EXPECT_EQ(summary->entries.files, 2u);
  EXPECT_EQ(summary->problems, 1u);
  EXPECT_EQ(summary->by_arch.at("sm_90a").files, 1u);
}

}  // namespace
}  // namespace chord::cache
