// The pruner under load: a gibibyte through a small folder beside readers, and many small entries.
#include <chrono>
#include <filesystem>
#include <thread>

#include "cache/pins.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/sanitizer.h"

namespace chord::cache {
namespace {

class PrunerLoad : public CacheTest {
 protected:
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
  // As a publish leaves them, at a fraction of its price.
  void put_small_entries(int from, int to) {
    for (int i = from; i < to; ++i) {
      const CacheKey key = numbered_key(i);
      ASSERT_FALSE(real.make_directories(layout().shard(key.name)));
      ASSERT_FALSE(real.write_exclusive(layout().entry(key.name), serialize(make_entry(key, 32))));
    }
  }
  // Of the last keys, in microseconds. The best of five rounds: the machine may be busy with other
  // things.
  double lookup_us(int newest) {
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
  }
};

TEST_F(PrunerLoad, AGibibyteThrough64MebibytesBesideEightReaders) {
  CHORD_SKIP_UNDER_SANITIZERS("a gibibyte takes minutes under a sanitizer");
  constexpr std::uint64_t kLimit = std::uint64_t{64} << 20;
  constexpr std::size_t kCubin = std::size_t{2} << 20;
  constexpr std::size_t kPinnedCubin = std::size_t{64} << 10;
  constexpr int kPinned = 8;
  constexpr int kEntries = kPinned + 512;
  CacheSettings bounded = settings();
  bounded.max_bytes = kLimit;
  std::vector<CacheKey> pinned;
  Manifest manifest{.label = "pinned", .compiler = "NVRTC 13.0.88"};
  for (int i = 0; i < kPinned; ++i) {
    pinned.push_back(numbered_key(i));
    manifest.keys.push_back({pinned.back().name, "k", "sm_90a", {}, 0});
  }
  fill(pinned, kPinnedCubin);
  for (const CacheKey& key : pinned) ASSERT_FALSE(real.touch(layout().entry(key.name), 0));
  ASSERT_TRUE(pin_manifest(layout(), manifest, real, clock).ok());

  std::atomic<int> inserted{kPinned};
  std::atomic<bool> is_done{false};
  std::atomic<int> wrong{0}, hits{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 8; ++reader)
    readers.emplace_back([&, reader] {
      for (int i = reader; !is_done; i += 7) {
        const auto cache = TieredCache::open(bounded, real, clock, log.sink());
        const auto old = (*cache)->find(pinned[i % kPinned]);
        if (old == nullptr || old->cubin.size() != kPinnedCubin) ++wrong;
        const int recent = inserted - 1 - i % 40;  // some of these are being evicted
        const auto entry = (*cache)->find(numbered_key(std::max(kPinned, recent)));
        hits += entry != nullptr;
        if (entry && entry->cubin.size() != kCubin) ++wrong;
        if ((*cache)->counters().bad_entries != 0) ++wrong;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // leave the writer a core
      }
    });
  const auto writer = open(bounded);
  // One cubin serves all: making the bytes would take longer than the test.
  Entry entry = make_entry(numbered_key(0), kCubin);
  std::uint64_t most = 0;
  for (int i = kPinned; i < kEntries; ++i) {
    entry.key = numbered_key(i);
    ASSERT_TRUE(writer->get_or_make(entry.key, [&]() -> Result<Entry> { return entry; }).ok());
    clock.advance_s(1);
    inserted = i + 1;
    if (i % 16 == 0) most = std::max(most, stored_bytes());
  }
  is_done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
  EXPECT_LE(std::max(most, stored_bytes()), kLimit);
  EXPECT_GT(stored_bytes(), kLimit / 2);
  EXPECT_GT(writer->counters().evictions, 450u);
  for (const CacheKey& key : pinned) EXPECT_TRUE(std::filesystem::exists(layout().entry(key.name)));
  EXPECT_TRUE(log.warnings().empty()) << log.warnings().front();
}

TEST_F(PrunerLoad, TwentyThousandEntriesStayFlatAndWithinTheFileLimit) {
  CHORD_SKIP_UNDER_SANITIZERS("times under a sanitizer say nothing");
  constexpr int kLimit = 20000;
  put_small_entries(0, 1000);
  const double few_us = lookup_us(1000);
  put_small_entries(1000, kLimit);
  const double many_us = lookup_us(kLimit);
  EXPECT_LT(many_us, 5 * few_us + 50) << few_us << " us among 1000 entries";
  CacheSettings bounded = settings();
  bounded.max_files = 2 * kLimit;
  EXPECT_EQ(open(bounded)->prune().usage.files, static_cast<std::uint64_t>(kLimit))
      << "a file each";
  bounded.max_files = kLimit;
  const auto writer = open(bounded);
  for (int i = kLimit; i < kLimit + 300; ++i)
    ASSERT_TRUE(writer->get_or_make(numbered_key(i), maker(numbered_key(i), 32)).ok());
  const VerifyReport report = writer->verify();
  EXPECT_TRUE(report.damaged.empty());
  EXPECT_LE(report.entries, static_cast<std::uint64_t>(kLimit));
  EXPECT_GT(report.entries, static_cast<std::uint64_t>(kLimit) * 9 / 10);
  EXPECT_GT(writer->counters().evictions, 0u);
}

}  // namespace
}  // namespace chord::cache
