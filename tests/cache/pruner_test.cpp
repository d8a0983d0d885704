// Bounds, age, pins, sweeps, and the entries of other schemas.
#include "cache/pruner.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

constexpr std::int64_t kSecond = testing::FakeClock::kSecond;
constexpr std::int64_t kDay = 24 * 3600;

class PrunerTest : public CacheTest {
 protected:
  bool is_stored(const CacheKey& key) const {
    return std::filesystem::exists(layout().entry(key.name));
  }
  std::vector<CacheKey> fill_numbered(int count) {
    std::vector<CacheKey> keys;
    for (int i = 0; i < count; ++i) keys.push_back(numbered_key(i));
    fill(keys);
    return keys;
  }
  void pin(const std::vector<CacheKey>& keys) {
    Manifest manifest{.label = "pinned", .compiler = "NVRTC 13.0.88"};
    for (const CacheKey& key : keys) manifest.keys.push_back({key.name, "k", "sm_90a", {}, 0});
    ASSERT_TRUE(pin_manifest(layout(), manifest, real, clock).ok());
  }
  void age(const CacheKey& key, std::int64_t seconds) {
    ASSERT_FALSE(real.touch(layout().entry(key.name), clock.now_ns() - seconds * kSecond));
  }
  // Files get their change time from the machine, so the test's clock goes on from there.
  void set_clock_days_after_now(std::int64_t days) {
    const base::SystemClock machine;
    clock.advance_s((machine.now_ns() - clock.now_ns()) / kSecond + days * kDay);
  }
  // The pins are listed twice: for temporaries before the look at the entries, to be read after it.
  void before_the_first_eviction(std::function<void()> action) {
    files.direct([this, action = std::move(action), lists = 0](std::string_view call,
                                                               const std::string& path) mutable {
      if (call == "list" && path == layout().pins() && ++lists == 2) action();
      return testing::Fault{};
    });
  }
  PruneReport prune(const Limits& limits) {
    return Pruner(layout(), limits, files, clock, log.sink()).prune(0);
  }
  PruneReport prune_to_files(std::uint64_t files) { return prune({std::uint64_t{1} << 40, files}); }
  PruneReport prune_by_age(std::int64_t days) {
    return prune({std::uint64_t{1} << 40, 1000, days * kDay * kSecond});
  }
  // An entry as a library of another schema would leave it; its path.
  std::string put_of_schema(int schema, const std::string& name, const std::string& shard_name,
                            std::size_t bytes = 100) {
    const std::string shard = root() + "/v" + std::to_string(schema) + "/" + shard_name;
    std::filesystem::create_directories(shard);
    std::ofstream(shard + "/" + name) << std::string(bytes, 'x');
    return shard + "/" + name;
  }
  std::string put_older(const std::string& source) {
    return put_of_schema(kSchemaVersion - 1, content_name(source),
                         content_name(source).substr(0, 2));
  }
};

TEST_F(PrunerTest, LeastRecentlyUsedGoesFirst) {
  const CacheKey old_key = numbered_key(0), used_key = numbered_key(1), new_key = numbered_key(2);
  fill({old_key, used_key, new_key});
  age(old_key, 300);
  age(used_key, 400);
  age(new_key, 200);
  EXPECT_NE(open()->find(used_key), nullptr);  // the stamp of this hit is the youngest
  CacheSettings two = settings();
  two.max_files = 2;
  EXPECT_EQ(open(two)->prune().evicted, 2u);  // room for one more
  EXPECT_FALSE(is_stored(old_key));
  EXPECT_FALSE(is_stored(new_key));
  EXPECT_TRUE(is_stored(used_key));
}

TEST_F(PrunerTest, AStampFromTheFutureIsNotImmortal) {
  const CacheKey future = numbered_key(0), now = numbered_key(1);
  fill({future, now});
  age(future, -1'000'000'000);
  age(now, 0);
  EXPECT_EQ(prune_to_files(1).evicted, 2u);
}

TEST_F(PrunerTest, PinnedEntriesStayAboveTheBound) {
  const std::vector<CacheKey> keys = fill_numbered(20);
  for (const CacheKey& key : keys) age(key, 100);
  const std::vector<CacheKey> pinned(keys.begin(), keys.begin() + 5);
  pin(pinned);
  CacheSettings tiny = settings();
  tiny.max_bytes = 1;
  EXPECT_EQ(open(tiny)->prune().evicted, 15u);
  for (const CacheKey& key : pinned) EXPECT_TRUE(is_stored(key));
}

TEST_F(PrunerTest, UnusedEntriesGoByAge) {
  const std::vector<CacheKey> keys = fill_numbered(3);
  set_clock_days_after_now(40);
  age(keys[0], 1);
  age(keys[1], 6 * kDay);
  age(keys[2], 8 * kDay);
  const PruneReport report = prune_by_age(7);
  EXPECT_EQ(report.expired, 1u);
  EXPECT_EQ(report.evicted, 1u);
  EXPECT_EQ(report.usage.files, 2u);
  EXPECT_FALSE(is_stored(keys[2]));
  EXPECT_EQ(prune_by_age(0).evicted, 0u) << "0 is no bound";
}

TEST_F(PrunerTest, PinnedEntriesStayWhateverTheirAge) {
  const std::vector<CacheKey> keys = fill_numbered(2);
  pin({keys[0]});
  set_clock_days_after_now(400);
  EXPECT_EQ(prune_by_age(7).expired, 1u);
  EXPECT_TRUE(is_stored(keys[0]));
}

TEST_F(PrunerTest, AHitMakesAnEntryYoung) {
  const std::vector<CacheKey> keys = fill_numbered(2);
  set_clock_days_after_now(400);
  EXPECT_NE(open()->find(keys[0]), nullptr);
  EXPECT_EQ(prune_by_age(7).expired, 1u);
  EXPECT_TRUE(is_stored(keys[0]));
}

TEST_F(PrunerTest, CopiedFilesAreAsOldAsTheirArrivalWhateverTheirStamps) {
  const std::int64_t year_2000 = 946'684'800 * kSecond;
  const std::vector<CacheKey> keys = fill_numbered(5);
  for (const std::int64_t stamp : {std::int64_t{0}, year_2000, 4 * clock.now_ns()}) {
    for (const CacheKey& key : keys) ASSERT_FALSE(real.touch(layout().entry(key.name), stamp));
    set_clock_days_after_now(6);
    EXPECT_EQ(prune_by_age(7).expired, 0u) << stamp;
    set_clock_days_after_now(0);
    const auto cache = open();
    for (const CacheKey& key : keys) EXPECT_NE(cache->find(key), nullptr) << stamp;
  }
  for (const CacheKey& key : keys) ASSERT_FALSE(real.touch(layout().entry(key.name), year_2000));
  set_clock_days_after_now(8);
  EXPECT_EQ(prune_by_age(7).expired, 5u);
}

TEST_F(PrunerTest, AClockThatStandsInThePastExpiresNothing) {
  const std::vector<CacheKey> keys = fill_numbered(2);
  set_clock_days_after_now(-10000);
  EXPECT_EQ(prune_by_age(1).expired, 0u);
}

TEST_F(PrunerTest, SweepsTemporariesOfTheDeadInEveryFolder) {
  const CacheKey key = numbered_key(0);
  fill({key});
  pin({key});
  const std::string fresh = layout().shard(key.name) + "/.tmp-fresh";
  std::filesystem::create_directories(layout().compilers());
  std::vector<std::string> dead{layout().shard(key.name) + "/.tmp-1", layout().pins() + "/.tmp-2",
                                layout().compilers() + "/.tmp-3"};
  for (const int schema : {kSchemaVersion - 1, kSchemaVersion + 1})
    dead.push_back(put_of_schema(schema, ".tmp-4", "ab"));
  for (const std::string& path : dead) {
    std::ofstream(path) << "x";
    ASSERT_FALSE(real.touch(path, clock.now_ns() - 3600 * kSecond));
  }
  std::ofstream(fresh) << "x";
  ASSERT_FALSE(real.touch(fresh, clock.now_ns()));
  EXPECT_EQ(open()->prune().swept, dead.size());
  for (const std::string& path : dead) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(std::filesystem::exists(fresh));
  EXPECT_TRUE(is_stored(key));
}

TEST_F(PrunerTest, SweepsLocksThatNobodyHolds) {
  fill({numbered_key(0)});
  std::ofstream(layout().lock("dead")) << "x";
  std::unique_ptr<FileLock> live;
  ASSERT_FALSE(real.try_lock(layout().lock("live"), live));
  EXPECT_EQ(open()->prune().swept, 1u);
  EXPECT_FALSE(std::filesystem::exists(layout().lock("dead")));
  EXPECT_TRUE(std::filesystem::exists(layout().lock("live")));
}

TEST_F(PrunerTest, OlderSchemasStayUntilNobodyUsedThemFor30Days) {
  fill({numbered_key(0)});
  const std::string used = put_older("used"), unused = put_older("unused");
  set_clock_days_after_now(29);
  EXPECT_EQ(prune_to_files(1000).swept, 0u);
  set_clock_days_after_now(31);
  ASSERT_FALSE(real.touch(used, clock.now_ns() - kDay * kSecond));  // by the older library
  const PruneReport report = prune_to_files(1000);
  EXPECT_EQ(report.swept, 1u);
  EXPECT_EQ(report.evicted, 0u);
  EXPECT_EQ(report.usage.files, 2u);
  EXPECT_FALSE(std::filesystem::exists(unused));
  EXPECT_TRUE(std::filesystem::exists(used));
  ASSERT_FALSE(real.touch(used, 0));
  EXPECT_EQ(prune_to_files(1000).swept, 1u);
  (void)prune_to_files(1000);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(used).parent_path()));
}

TEST_F(PrunerTest, OlderSchemasCountAndAreEvictedInOneOrderWithOurs) {
  const CacheKey old_key = numbered_key(0), new_key = numbered_key(1);
  fill({old_key, new_key});
  const std::string oldest = put_older("oldest"), youngest = put_older("youngest");
  age(old_key, 300);
  age(new_key, 100);
  ASSERT_FALSE(real.touch(oldest, clock.now_ns() - 400 * kSecond));
  ASSERT_FALSE(real.touch(youngest, clock.now_ns() - 50 * kSecond));
  const PruneReport report = prune_to_files(3);
  EXPECT_EQ(report.evicted, 2u);
  EXPECT_EQ(report.usage.files, 2u);
  EXPECT_FALSE(std::filesystem::exists(oldest));
  EXPECT_FALSE(is_stored(old_key));
  EXPECT_TRUE(std::filesystem::exists(youngest));
  EXPECT_TRUE(is_stored(new_key));
}

TEST_F(PrunerTest, PinnedEntriesOfOlderSchemasStay) {
  const std::string pinned = put_older("pinned"), other = put_older("other");
  pin({CacheKey{.text = {}, .name = content_name("pinned")}});
  set_clock_days_after_now(31);
  EXPECT_EQ(prune({1, 1}).swept, 1u);
  EXPECT_TRUE(std::filesystem::exists(pinned));
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(PrunerTest, NewerSchemasCountButAreNeverTouched) {
  const CacheKey key = numbered_key(0);
  fill({key});
  const std::string newer = put_of_schema(kSchemaVersion + 1, content_name("newer"), "00", 5000);
  const std::string strange = put_of_schema(999, "named otherwise", "ab");
  set_clock_days_after_now(400);
  const PruneReport report = prune({5000, 1000, kDay * kSecond});
  EXPECT_EQ(report.evicted, 1u);
  EXPECT_EQ(report.usage.files, 2u);
  EXPECT_EQ(report.usage.bytes, 5100u);
  EXPECT_TRUE(std::filesystem::exists(newer));
  EXPECT_TRUE(std::filesystem::exists(strange));
}

TEST_F(PrunerTest, FilesThatThisLibraryWouldNotHaveNamedStay) {
  fill({numbered_key(0)});
  std::filesystem::create_directories(root() + "/v0/ab");
  const std::string foreign[] = {root() + "/v0/readme", root() + "/v0/ab/notes", root() + "/vX",
                                 layout().locks() + "/notes", root() + "/notes"};
  for (const std::string& path : foreign) {
    std::ofstream(path) << "mine";
    ASSERT_FALSE(real.touch(path, 0));
  }
  set_clock_days_after_now(400);
  EXPECT_EQ(prune({1, 1, kDay}).evicted, 1u);
  for (const std::string& path : foreign) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(PrunerTest, AnEntryThatIsUsedJustBeforeItsTurnStays) {
  const std::vector<CacheKey> keys = fill_numbered(4);
  for (const CacheKey& key : keys) age(key, 100);
  before_the_first_eviction([&] { age(keys[0], 0); });
  EXPECT_EQ(prune_to_files(1).evicted, 3u);
  EXPECT_TRUE(is_stored(keys[0]));
}

TEST_F(PrunerTest, TwoAtOnceWithoutLocksEvictNoMoreThanOneAlone) {
  fill_numbered(64);
  files.set_locks(testing::FaultFileSystem::Locks::never_exclusive);
  std::uint64_t other_evicted = 0;
  before_the_first_eviction([&] {
    other_evicted =
        Pruner(layout(), {std::uint64_t{1} << 40, 32}, real, clock, log.sink()).prune(0).evicted;
  });
  const PruneReport report = prune_to_files(32);
  EXPECT_GE(other_evicted, 33u);
  EXPECT_EQ(report.evicted, 0u);
  EXPECT_EQ(report.usage.files, 64 - other_evicted);
}

TEST_F(PrunerTest, OneProcessAtATime) {
  fill({numbered_key(0)});
  std::unique_ptr<FileLock> other;
  ASSERT_FALSE(real.try_lock(root() + "/prune.lock", other));
  EXPECT_FALSE(open()->prune().ran);
}

TEST_F(PrunerTest, OfAMissingFolderMakesNothing) {
  EXPECT_TRUE(open()->prune().ran);
  EXPECT_FALSE(std::filesystem::exists(root()));
}

}  // namespace
}  // namespace chord::cache
