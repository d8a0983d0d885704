// Every error number of every call of the file layer, for good or for a while, and disks that fill
// up at any byte: the caller gets its kernel, few words are said, nothing half-written stays.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/cache/cache_fixture.h"
#include "tests/support/fault_calls.h"

namespace chord::cache {
namespace {

constexpr int kErrors[] = {ENOENT, EEXIST, EBUSY, ESTALE, EXDEV,  ENOSPC, EDQUOT, EACCES,
                           EINTR,  EIO,    EROFS, ELOOP,  ENOLCK, EMFILE, EPERM};

class EveryErrno : public CacheTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder / "roots"); }

  // A folder of its own for every error.
  CacheSettings settings_of(int error_number) const {
    CacheSettings own = settings();
    own.writable_dir = folder / ("roots/" + std::to_string(error_number));
    return own;
  }
  std::size_t temporaries() const {
    std::size_t found = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path()))
      found += file.path().filename().string().starts_with(Layout::kTemporaryPrefix);
    return found;
  }
  void expect_served(TieredCache& cache, const char* why) {
    for (const char* source : {"a", "b", "c"}) {
      const CacheKey key = make_key(source);
      const auto entry = cache.get_or_make(key, maker(key));
      ASSERT_TRUE(entry.ok()) << why << entry.error().message();
      EXPECT_EQ((*entry)->cubin, cubin_of(key)) << why;
    }
  }
};

TEST_P(EveryErrno, ForGoodCostsTheCacheAndNeverTheKernel) {
  for (const int error_number : kErrors) {
    const testing::LogRecorder words;
    files.fail(GetParam(), error_number);
    log = words;
    const auto cache = open(settings_of(error_number));
    expect_served(*cache, std::strerror(error_number));
    EXPECT_EQ(cache->counters().compiles, 3u);
    // At most one of each kind: can not be read, not cached.
    EXPECT_LE(log.warnings().size(), 2u) << std::strerror(error_number);
    files.heal();
    if (std::string(GetParam()) != "remove") {
      EXPECT_EQ(temporaries(), 0u);
    }
    const auto next = open(settings_of(error_number));
    expect_served(*next, "healed after ");
    EXPECT_EQ(next->counters().write_failures, 0u);
    EXPECT_TRUE(next->verify().damaged.empty());
  }
}

TEST_P(EveryErrno, ForThreeSecondsIsForgottenAfterwards) {
  for (const int error_number : kErrors) {
    const CacheSettings own = settings_of(error_number);
    expect_served(*open(own), "before: ");
    const std::int64_t end_ns = clock.now_ns() + 3 * testing::FakeClock::kSecond;
    files.fail_if([&](std::string_view call, const std::string& path) {
      const bool is_new = path.find("/v") != std::string::npos;
      return call == GetParam() && is_new && clock.now_ns() < end_ns ? error_number : 0;
    });
    expect_served(*open(own), "meanwhile: ");
    clock.advance_s(3);
    const auto cache = open(own);
    compiles = 0;
    expect_served(*cache, "afterwards: ");
    EXPECT_EQ(compiles, 0) << std::strerror(error_number);
    EXPECT_EQ(cache->counters().bad_entries, 0u);
    files.heal();  // the rule knows this round's values only
  }
}

INSTANTIATE_TEST_SUITE_P(Cache, EveryErrno,
                         ::testing::Values("read", "write_exclusive", "rename", "sync_directory",
                                           "remove", "make_directories", "list", "stat", "touch",
                                           "try_lock", "overwrite"),
                         [](const auto& info) { return std::string(info.param); });

class FullDisk : public CacheTest {
 protected:
  std::unique_ptr<TieredCache> open_on(FileSystem& disk) {
    auto cache = TieredCache::open(settings(), disk, clock, log.sink());
    return std::move(cache).value();
  }
  // Nothing but whole entries and locks.
  void expect_whole(std::size_t entries) {
    EXPECT_TRUE(open()->verify().damaged.empty());
    EXPECT_EQ(open()->verify().entries, entries);
    for (const auto& file : std::filesystem::recursive_directory_iterator(root()))
      EXPECT_FALSE(file.path().filename().string().starts_with(Layout::kTemporaryPrefix));
  }

  testing::FaultCalls calls;
  base::PosixFileSystem disk{calls};
};

TEST_F(FullDisk, AtAnyByteServesAndLeavesNoPart) {
  const CacheKey key = make_key("a");
  const auto size = static_cast<std::int64_t>(serialize(make_entry(key)).size());
  for (const std::int64_t room : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 1}) {
    calls.room = room;
    const auto cache = open_on(disk);
    const auto entry = cache->get_or_make(key, maker(key));
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ((*entry)->cubin, cubin_of(key));
    EXPECT_EQ(cache->counters().write_failures, 1u);
    EXPECT_NE(cache->find(key), nullptr) << "from memory";
    expect_whole(0);
  }
  EXPECT_EQ(log.warnings().size(), 4u) << "one of each process";
  calls.room = 100 * size;
  ASSERT_TRUE(open_on(disk)->get_or_make(key, maker(key)).ok());
  expect_whole(1);
}

TEST_F(FullDisk, ThatIsToldByTheCloseServesAndLeavesNoPart) {
  const CacheKey key = make_key("a");
  calls.fail("close", EDQUOT, testing::FaultCalls::kAlways);
  const auto cache = open_on(disk);
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(cache->counters().write_failures, 1u);
  expect_whole(0);
}

TEST_F(FullDisk, IsNotWhatWritesOfOneByteAre) {
  const CacheKey key = make_key("a");
  calls.most_bytes = 1;
  for (const char* call : {"open", "read", "write", "fsync", "rename", "mkdir", "lock"})
    calls.fail(call, EINTR, 20);
  ASSERT_TRUE(open_on(disk)->get_or_make(key, maker(key)).ok());
  expect_whole(1);
  EXPECT_NE(open_on(disk)->find(key), nullptr);
  EXPECT_TRUE(log.warnings().empty());
}

}  // namespace
}  // namespace chord::cache
