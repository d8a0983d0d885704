// Damaged entries, files that are not trusted, and folders that are not what they should be.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cache/disk_tier.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class DamagedEntry : public CacheTest {
 protected:
  // Damages the entry, asks for it, and sees it detected, set aside and made again.
  void expect_rebuilt(const CacheKey& key, const std::string& damaged) {
    write_file(layout().entry(key.name), damaged);
    compiles = 0;
    const auto cache = open();
    const auto entry = cache->get_or_make(key, maker(key));
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ((*entry)->cubin, cubin_of(key));
    EXPECT_EQ(compiles, 1);
    EXPECT_EQ(cache->counters().bad_entries, 1u);
    EXPECT_EQ(read_file(layout().bad(key.name)), damaged);
    EXPECT_NE(open()->find(key), nullptr);
  }
};

TEST_F(DamagedEntry, CutAnywhereIsSetAsideAndMadeAgain) {
  const CacheKey key = make_key("a");
  fill({key});
  const std::string good = read_file(layout().entry(key.name));
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 1})
    expect_rebuilt(key, good.substr(0, length));
}

TEST_F(DamagedEntry, OneFlippedBitIn200PlacesIsSetAsideAndMadeAgain) {
  const CacheKey key = make_key("a");
  fill({key});
  const std::string good = read_file(layout().entry(key.name));
  std::mt19937 random(8);
  for (int place = 0; place < 200; ++place) {
    std::string damaged = good;
    const std::size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    expect_rebuilt(key, damaged);
  }
}

TEST_F(DamagedEntry, AreKeptInABoundedNumber) {
  std::vector<CacheKey> keys;
  for (int i = 0; i < 40; ++i) keys.push_back(make_key(std::to_string(i)));
  fill(keys);
  for (const CacheKey& key : keys) write_file(layout().entry(key.name), "rubbish");
  const auto cache = open();
  for (const CacheKey& key : keys) ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(cache->counters().bad_entries, 40u);
  std::vector<std::string> kept;
  ASSERT_FALSE(real.list(layout().bad(), kept));
  EXPECT_EQ(kept.size(), 16u);
}

TEST_F(DamagedEntry, IsLeftWhereItIsByALookUp) {
  const CacheKey key = make_key("a");
  fill({key});
  write_file(layout().entry(key.name), "rubbish");
  const auto cache = open();
  EXPECT_EQ(cache->find(key), nullptr);
  EXPECT_EQ(cache->counters().bad_entries, 1u);
  EXPECT_EQ(read_file(layout().entry(key.name)), "rubbish");
  EXPECT_FALSE(std::filesystem::exists(layout().bad()));
}

TEST_F(DamagedEntry, InAReadonlyFolderIsAMissAndStays) {
  const CacheKey key = make_key("a");
  fill({key});
  write_file(layout().entry(key.name), "rubbish");
  CacheSettings other = settings();
  other.writable_dir = folder / "other";
  other.readonly_dirs = {root()};
  const auto cache = open(other);
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(cache->counters().bad_entries, 1u);
  EXPECT_EQ(read_file(layout().entry(key.name)), "rubbish");
}

class NotTrusted : public CacheTest {
 protected:
  // Served, but not from the folder, and the log says why.
  void expect_refused(const CacheKey& key, std::string_view reason) {
    compiles = 0;
    const auto cache = open();
    const auto entry = cache->get_or_make(key, maker(key));
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ(compiles, 1);
    EXPECT_GE(cache->counters().bad_entries, 1u);
    EXPECT_TRUE(log.has(LogLevel::warn, reason)) << reason;
  }
};

TEST_F(NotTrusted, FolderThatOthersMayWrite) {
  const CacheKey key = make_key("a");
  fill({key});
  ASSERT_EQ(::chmod(root().c_str(), 0777), 0);
  expect_refused(key, "group or others may write it (mode 0777)");
  EXPECT_EQ(log.warnings().size(), 1u);
  // Nothing is written there either.
  const CacheKey other = make_key("b");
  ASSERT_TRUE(open()->get_or_make(other, maker(other)).ok());
  EXPECT_FALSE(std::filesystem::exists(layout().entry(other.name)));
}

TEST_F(NotTrusted, FolderIsNamedToWhoAsksOnlyForItsCompilers) {
  fill({make_key("a")});
  ASSERT_EQ(::chmod(root().c_str(), 0777), 0);
  EXPECT_TRUE(open()->compiler_identities().empty());
  EXPECT_TRUE(log.has(LogLevel::warn, "group or others may write it (mode 0777)"));
}

TEST_F(NotTrusted, SubfolderThatOthersMayWrite) {
  const CacheKey key = make_key("a");
  fill({key});
  ASSERT_EQ(::chmod(layout().shard(key.name).c_str(), 0770), 0);
  expect_refused(key, "group or others may write it (mode 0770)");
}

TEST_F(NotTrusted, EntryThatOthersMayWrite) {
  const CacheKey key = make_key("a");
  fill({key});
  ASSERT_EQ(::chmod(layout().entry(key.name).c_str(), 0666), 0);
  expect_refused(key, "group or others may write it (mode 0666)");
  EXPECT_NE(open()->find(key), nullptr) << "it was replaced by a good one";
}

TEST_F(NotTrusted, SymbolicLinkInAnEntrysPlace) {
  const CacheKey key = make_key("a");
  fill({key});
  const std::string elsewhere = folder / "elsewhere";
  std::filesystem::rename(layout().entry(key.name), elsewhere);
  std::filesystem::create_symlink(elsewhere, layout().entry(key.name));
  expect_refused(key, "symbolic link");
  EXPECT_FALSE(std::filesystem::is_symlink(layout().entry(key.name)));
}

TEST_F(NotTrusted, SymbolicLinkInTheFoldersPlace) {
  const CacheKey key = make_key("a");
  fill({key});
  std::filesystem::rename(root(), folder / "elsewhere");
  std::filesystem::create_symlink(folder / "elsewhere", root());
  expect_refused(key, "symbolic link");
}

TEST_F(NotTrusted, FolderOfAnotherUser) {
  const CacheKey key = make_key("a");
  fill({key});
  files.set_user(real.user() + 1);
  expect_refused(key, "it belongs to user");
}

TEST_F(NotTrusted, EntryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const CacheKey key = make_key("a");
  fill({key});
  ASSERT_EQ(::chown(layout().entry(key.name).c_str(), 4711, 4711), 0);
  expect_refused(key, "it belongs to user 4711");
}

TEST_F(NotTrusted, APipeInAnEntrysPlaceDoesNotHang) {
  const CacheKey key = make_key("a");
  fill({key});
  ASSERT_EQ(::unlink(layout().entry(key.name).c_str()), 0);
  ASSERT_EQ(::mkfifo(layout().entry(key.name).c_str(), 0600), 0);
  const auto cache = open();
  EXPECT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
}

TEST(Trust, ReadonlyFoldersMayBelongToRoot) {
  FileStat stat{.exists = true, .is_directory = true, .mode = 0755, .owner = 0};
  EXPECT_EQ(why_not_trusted(stat, Trust::own_and_root, 1000), "");
  EXPECT_NE(why_not_trusted(stat, Trust::own, 1000), "");
  stat.mode = 0775;
  EXPECT_NE(why_not_trusted(stat, Trust::own_and_root, 1000), "");
  stat = {.exists = true, .is_directory = true, .mode = 0755, .owner = 1001};
  EXPECT_NE(why_not_trusted(stat, Trust::own_and_root, 1000), "");
}

TEST(DiskTier, RefusesNamesThatAreNoNames) {
  testing::TemporaryFolder folder;
  base::PosixFileSystem files;
  testing::FakeClock clock;
  DiskTier tier(folder / "cache", Access::read_write, files, clock);
  const CacheKey key{.text = "x", .name = "../../../../etc/passwd"};
  EXPECT_EQ(tier.get(key).lookup, Lookup::absent);
  EXPECT_FALSE(tier.put(key, "x").ok());
  EXPECT_FALSE(tier.remove(key).ok());
}

}  // namespace
}  // namespace chord::cache
