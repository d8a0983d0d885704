// File systems that are full, read-only, shared or odd: the caller gets its kernel, one warning
// tells, the counters count.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

using testing::ChildProcess;

class Faults : public CacheTest {
 protected:
  // Three kernels are served in spite of the fault, with one warning.
  void expect_served_with_one_warning() {
    const auto cache = open();
    for (const char* source : {"a", "b", "c"}) {
      const CacheKey key = make_key(source);
      const auto entry = cache->get_or_make(key, maker(key));
      ASSERT_TRUE(entry.ok()) << entry.error().message();
      EXPECT_EQ((*entry)->cubin, cubin_of(key));
      EXPECT_NE(cache->find(key), nullptr) << "served from memory";
    }
    EXPECT_EQ(compiles, 3);
    EXPECT_EQ(cache->counters().write_failures, 3u);
    EXPECT_EQ(log.warnings().size(), 1u);
    expect_no_rest();
  }

  void expect_no_rest() {
    if (!std::filesystem::is_directory(root())) return;
    for (const auto& file : std::filesystem::recursive_directory_iterator(root()))
      EXPECT_FALSE(file.path().filename().string().starts_with(Layout::kTemporaryPrefix))
          << file.path();
  }
};

class PublishFault : public Faults,
                     public ::testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(PublishFault, IsAWarningAndACounter) {
  files.fail(GetParam().first, GetParam().second);
  expect_served_with_one_warning();
}

INSTANTIATE_TEST_SUITE_P(
    Cache, PublishFault,
    ::testing::Values(std::pair("write_exclusive", ENOSPC), std::pair("write_exclusive", EDQUOT),
                      std::pair("write_exclusive", ENOENT), std::pair("write_exclusive", EROFS),
                      std::pair("write_exclusive", EIO), std::pair("rename", EBUSY),
                      std::pair("rename", ESTALE), std::pair("rename", EXDEV),
                      std::pair("rename", ENOENT), std::pair("make_directories", EACCES),
                      std::pair("make_directories", EROFS)),
    [](const auto& info) {
      return std::string(info.param.first) + "_" + std::to_string(info.param.second);
    });

TEST_F(Faults, ABusyRenameIsTriedAgain) {
  const CacheKey key = make_key("a");
  files.fail("rename", EBUSY, 2);
  const auto cache = open();
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(cache->counters().write_failures, 0u);
  EXPECT_NE(open()->find(key), nullptr);
  EXPECT_TRUE(log.warnings().empty());
}

TEST_F(Faults, LosingTheRenameRaceIsSuccess) {
  const CacheKey key = make_key("a");
  files.fail("rename", EEXIST);
  const auto cache = open();
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(cache->counters().write_failures, 0u);
  expect_no_rest();
}

TEST_F(Faults, APathThatIsNotVisibleForThreeSecondsCostsACompileAndNoMore) {
  const CacheKey key = make_key("a");
  fill({key});
  const std::int64_t visible_ns = clock.now_ns() + 3 * testing::FakeClock::kSecond;
  files.fail_if([&](std::string_view, const std::string& path) {
    const bool is_new = path.find("/v") != std::string::npos;
    return is_new && clock.now_ns() < visible_ns ? ENOENT : 0;
  });
  const auto cache = open();
  const auto entry = cache->get_or_make(key, maker(key));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ((*entry)->cubin, cubin_of(key));
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ(cache->counters().write_failures, 1u);
  clock.advance_s(3);
  EXPECT_NE(open()->find(key), nullptr);
}

TEST_F(Faults, RemoveThatIsBusyStopsNothing) {
  files.fail("remove", EBUSY);
  const CacheKey key = make_key("a");
  CacheSettings tight = settings();
  tight.max_files = 1;
  const auto cache = open(tight);
  for (const char* source : {"a", "b", "c"})
    ASSERT_TRUE(cache->get_or_make(make_key(source), maker(make_key(source))).ok());
  EXPECT_EQ(cache->counters().write_failures, 0u);
}

TEST_F(Faults, ReadErrorIsAMissWithOneWarning) {
  const CacheKey key = make_key("a");
  fill({key});
  files.fail("read", EIO);
  const auto cache = open();
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(log.warnings().size(), 1u);
}

TEST_F(Faults, LocksThatExcludeNobodyKeepResultsRight) {
  files.set_locks(testing::FaultFileSystem::Locks::never_exclusive);
  const CacheKey key = make_key("a");
  // Two processes that both hold "the lock": the second finds the winner's entry or replaces it.
  const auto first = open();
  const auto second = open();
  ASSERT_TRUE(first
                  ->get_or_make(key,
                                [&]() -> Result<Entry> {
                                  EXPECT_TRUE(second->get_or_make(key, maker(key)).ok());
                                  return maker(key)();
                                })
                  .ok());
  const auto entry = open()->find(key);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->cubin, cubin_of(key));
  EXPECT_TRUE(open()->verify().damaged.empty());
}

TEST_F(Faults, ALockThatIsNeverFreeIsWaitedForWithinTheLimit) {
  files.set_locks(testing::FaultFileSystem::Locks::always_taken);
  const CacheKey key = make_key("a");
  const std::int64_t start = clock.steady_ns();
  const auto cache = open();
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_LE(clock.steady_ns() - start, 2100 * std::int64_t{1'000'000});
  EXPECT_GE(clock.steady_ns() - start, 1900 * std::int64_t{1'000'000});
  EXPECT_EQ(cache->counters().waits, 1u);
  EXPECT_NE(open()->find(key), nullptr);
}

TEST_F(Faults, LocksThatAreNotSupportedAreDoneWithout) {
  files.fail("try_lock", ENOLCK);
  const CacheKey key = make_key("a");
  ASSERT_TRUE(open()->get_or_make(key, maker(key)).ok());
  EXPECT_NE(open()->find(key), nullptr);
  EXPECT_TRUE(log.warnings().empty());
}

// A write that the kernel cuts short, for real: the child may write files of 500 bytes only.
TEST_F(Faults, AWriteThatIsCutShortLeavesNoEntry) {
  const CacheKey key = make_key("a");
  ChildProcess child = ChildProcess::run([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{500, 500};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    const auto cache = open();
    const auto entry = cache->get_or_make(key, maker(key, 100000));
    if (!entry || (*entry)->cubin != make_entry(key, 100000).cubin) return 11;
    return cache->counters().write_failures == 1 && log.warnings().size() == 1 ? 0 : 12;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(layout().entry(key.name)));
  expect_no_rest();
}

TEST_F(Faults, AFullDiskLeavesNoEntry) {
  const std::string disk = folder / "disk";
  ASSERT_TRUE(std::filesystem::create_directory(disk));
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0)
    GTEST_SKIP() << "a small tmpfs can not be mounted here";
  {
    CacheSettings on_disk = settings();
    on_disk.writable_dir = disk + "/cache";
    const auto cache = open(on_disk);
    int full = 0;
    for (int i = 0; i < 8; ++i) {
      const CacheKey key = make_key(std::to_string(i));
      const auto entry = cache->get_or_make(key, maker(key, 20000));
      ASSERT_TRUE(entry.ok());
      EXPECT_EQ((*entry)->cubin, make_entry(key, 20000).cubin);
      full = static_cast<int>(cache->counters().write_failures);
    }
    EXPECT_GT(full, 0);
    EXPECT_LT(full, 8);
    EXPECT_EQ(log.warnings().size(), 1u);
    const VerifyReport report = open(on_disk)->verify();
    EXPECT_EQ(report.entries + full, 8u);
    EXPECT_TRUE(report.damaged.empty());
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(Faults, APathThatIsAFileIsServedWithOneWarning) {
  std::ofstream(root()) << "not a folder";
  expect_served_with_one_warning();
}

TEST_F(Faults, APathThatIsAFileIsAnErrorWhereItWasAskedFor) {
  std::ofstream(root()) << "not a folder";
  for (const std::string& path : {root(), root() + "/below"}) {
    CacheSettings asked = settings();
    asked.writable_dir = path;
    asked.writable_dir_was_asked_for = true;
    const auto cache = TieredCache::open(asked, files, clock, log.sink());
    ASSERT_FALSE(cache.ok());
    EXPECT_NE(cache.error().message().find(path), std::string::npos);
  }
}

TEST_F(Faults, WithoutAWritableFolderOneWarningSaysWhyWhenItMatters) {
  CacheSettings none;
  none.why_no_writable_dir = "HOME is not set";
  const auto cache = open(none);
  EXPECT_EQ(cache->find(make_key("a")), nullptr);
  EXPECT_TRUE(log.warnings().empty());
  for (const char* source : {"a", "b"})
    ASSERT_TRUE(cache->get_or_make(make_key(source), maker(make_key(source))).ok());
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_TRUE(log.has(LogLevel::warn, "HOME is not set"));
  const Status prepared = cache->prepare_writable();
  ASSERT_FALSE(prepared.ok());
  EXPECT_NE(prepared.error().message().find("CHORD_CACHE_DIR"), std::string::npos);
}

}  // namespace
}  // namespace chord::cache
