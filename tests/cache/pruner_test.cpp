// Bounds, pins and sweeps.
#include "cache/pruner.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

CacheKey numbered_key(int number) { return make_key("kernel " + std::to_string(number)); }

class PrunerTest : public CacheTest {
 protected:
  bool is_stored(const CacheKey& key) const {
    return std::filesystem::exists(layout().entry(key.name));
  }
  void pin(const std::vector<CacheKey>& keys) {
    Manifest manifest{.label = "pinned", .compiler = "NVRTC 13.0.88"};
    for (const CacheKey& key : keys) manifest.keys.push_back({key.name, "k", "sm_90a", {}, 0});
    ASSERT_TRUE(open()->write_manifest(manifest).ok());
  }
  std::uint64_t stored_bytes() const {
    std::uint64_t bytes = 0;
    std::error_code gone;  // an entry may be evicted while we look
    for (const auto& file : std::filesystem::recursive_directory_iterator(layout().entries(), gone))
      if (file.is_regular_file(gone)) {
        const std::uint64_t size = file.file_size(gone);
        if (!gone) bytes += size;
      }
    return bytes;
  }
  void age(const CacheKey& key, std::int64_t seconds) {
    ASSERT_FALSE(real.touch(layout().entry(key.name),
                            clock.now_ns() - seconds * testing::FakeClock::kSecond));
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
  CacheSettings one = settings();
  one.max_files = 1;
  EXPECT_EQ(open(one)->prune().evicted, 2u);
}

TEST_F(PrunerTest, PinnedEntriesStayAboveTheBound) {
  std::vector<CacheKey> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(numbered_key(i));
  fill(keys);
  for (const CacheKey& key : keys) age(key, 100);
  const std::vector<CacheKey> pinned(keys.begin(), keys.begin() + 5);
  pin(pinned);
  CacheSettings tiny = settings();
  tiny.max_bytes = 1;
  EXPECT_EQ(open(tiny)->prune().evicted, 15u);
  for (const CacheKey& key : pinned) EXPECT_TRUE(is_stored(key));
}

TEST_F(PrunerTest, SweepsTemporariesLocksAndOlderSchemas) {
  const CacheKey key = numbered_key(0);
  fill({key});
  const std::string old_temporary = layout().shard(key.name) + "/.tmp-old";
  const std::string new_temporary = layout().shard(key.name) + "/.tmp-new";
  std::filesystem::create_directories(root() + "/v0/ab");
  std::filesystem::create_directories(root() + "/v999/ab");
  for (const std::string& path : {old_temporary, new_temporary, layout().lock("dead"),
                                  root() + "/v0/ab/entry", root() + "/v999/ab/entry"})
    std::ofstream(path) << "x";
  ASSERT_FALSE(real.touch(old_temporary, clock.now_ns() - 3600 * testing::FakeClock::kSecond));
  ASSERT_FALSE(real.touch(new_temporary, clock.now_ns()));
  std::unique_ptr<FileLock> live;
  ASSERT_FALSE(real.try_lock(layout().lock("live"), live));
  EXPECT_EQ(open()->prune().swept, 3u);
  EXPECT_FALSE(std::filesystem::exists(old_temporary));
  EXPECT_TRUE(std::filesystem::exists(new_temporary));
  EXPECT_FALSE(std::filesystem::exists(layout().lock("dead")));
  EXPECT_TRUE(std::filesystem::exists(layout().lock("live")));
  EXPECT_FALSE(std::filesystem::exists(root() + "/v0"));
  EXPECT_TRUE(std::filesystem::exists(root() + "/v999/ab/entry"));
  EXPECT_TRUE(is_stored(key));
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

TEST_F(PrunerTest, AGibibyteThrough64MebibytesBesideEightReaders) {
  constexpr std::uint64_t kLimit = std::uint64_t{64} << 20;
  constexpr std::size_t kCubin = std::size_t{512} << 10;
  constexpr int kEntries = 2048;
  CacheSettings bounded = settings();
  bounded.max_bytes = kLimit;
  std::vector<CacheKey> pinned;
  for (int i = 0; i < 8; ++i) pinned.push_back(numbered_key(i));
  fill(pinned, kCubin);
  for (const CacheKey& key : pinned) age(key, 1000);
  pin(pinned);

  std::atomic<int> inserted{8};
  std::atomic<bool> is_done{false};
  std::atomic<int> wrong{0}, hits{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 8; ++reader)
    readers.emplace_back([&, reader] {
      for (int i = reader; !is_done; i += 7) {
        const auto cache = TieredCache::open(bounded, real, clock, log.sink());
        const int newest = inserted;
        const CacheKey recent = numbered_key(std::max(0, newest - 1 - i % 40));
        for (const CacheKey& key : {pinned[i % 8], recent}) {
          const auto entry = (*cache)->find(key);
          hits += entry != nullptr;
          if (entry && entry->cubin.size() != kCubin) ++wrong;
        }
        if ((*cache)->find(pinned[i % 8]) == nullptr) ++wrong;
        if ((*cache)->counters().bad_entries != 0) ++wrong;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // leave the writer a core
      }
    });
  const auto writer = open(bounded);
  // One cubin serves all: making the bytes would take longer than the test.
  Entry entry = make_entry(numbered_key(0), kCubin);
  std::uint64_t most = 0;
  for (int i = 8; i < kEntries; ++i) {
    const CacheKey key = numbered_key(i);
    ASSERT_TRUE(writer
                    ->get_or_make(key,
                                  [&]() -> Result<Entry> {
                                    entry.key = key;
                                    return entry;
                                  })
                    .ok());
    clock.advance_s(1);
    inserted = i + 1;
    if (i % 50 == 0) most = std::max(most, stored_bytes());
  }
  is_done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
  EXPECT_LE(std::max(most, stored_bytes()), kLimit);
  EXPECT_GT(stored_bytes(), kLimit / 2);
  EXPECT_GT(writer->counters().evictions, 1500u);
  for (const CacheKey& key : pinned) EXPECT_TRUE(is_stored(key));
  EXPECT_TRUE(log.warnings().empty()) << log.warnings().front();
}

TEST_F(PrunerTest, TwentyThousandEntriesStayFlatAndWithinTheFileLimit) {
  constexpr int kLimit = 20000;
  // The best of five rounds: the machine may be busy with other things.
  const auto lookup_us = [&](int newest) {
    constexpr int kLookups = 200;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto cache = open();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kLookups; ++i)
        EXPECT_NE(cache->find(numbered_key(newest - 1 - i)), nullptr);
      const std::chrono::duration<double, std::micro> passed =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, passed.count() / kLookups);
    }
    return best;
  };
  CacheSettings bounded = settings();
  bounded.max_files = kLimit;
  const auto writer = open(bounded);
  const auto insert = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const CacheKey key = numbered_key(i);
      ASSERT_TRUE(writer->get_or_make(key, maker(key, 32)).ok());
    }
  };
  insert(0, 1000);
  const double few_us = lookup_us(1000);
  insert(1000, kLimit);
  const double many_us = lookup_us(kLimit);
  EXPECT_LT(many_us, 5 * few_us + 50) << few_us << " us among 1000 entries";
  EXPECT_EQ(writer->verify().entries, static_cast<std::uint64_t>(kLimit));
  clock.advance_s(60);
  insert(kLimit, kLimit + 300);
  const std::uint64_t entries = writer->verify().entries;
  EXPECT_LE(entries, static_cast<std::uint64_t>(kLimit));
  EXPECT_GT(entries, static_cast<std::uint64_t>(kLimit) * 9 / 10);
}

}  // namespace
}  // namespace chord::cache
