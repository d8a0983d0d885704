// A bundle is larger than the memory it takes: export and import hold one entry at a time.
#include <sys/resource.h>

#include "tests/cache/bundle/bundle_fixture.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizer.h"

namespace chord::cache {
namespace {

// Measured with 200: 24 MB for 200 MB, too. Fewer keep the test short; most of its time is SHA-256.
constexpr int kEntries = 48;
constexpr std::size_t kCubinBytes = std::size_t{1} << 20;
constexpr std::int64_t kMostGrowth = std::int64_t{36} << 20;

std::int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

class BundleMemoryTest : public BundleTest {
 protected:
  // Made anew at each call; a short pattern, so that the file stays small and the test short.
  static Entry large_entry(int number) {
    Entry entry = make_entry(key_of(number), 4096);
    while (entry.cubin.size() < kCubinBytes) entry.cubin += entry.cubin;
    return entry;
  }
  EntrySource synthetic() {
    for (int i = 0; i < kEntries; ++i) numbers_[key_of(i).name] = i;
    return [this](const std::string& name) {
      return TierAnswer{Lookup::value, serialize(large_entry(numbers_.at(name))), {}};
    };
  }

  std::map<std::string, int> numbers_;
};

TEST_F(BundleMemoryTest, StaysFarBelowTheBundle) {
  CHORD_SKIP_UNDER_SANITIZERS("a sanitizer keeps what was freed");
  auto child = testing::ChildProcess::run([&] {
    const EntrySource source = synthetic();
    const std::int64_t before = peak_bytes();
    const auto written =
        export_bundle(manifest_of(kEntries), source, key(), bundle_path(), {}, files);
    if (!written.ok() || written->entry_bytes < kEntries * kCubinBytes) return 2;
    const std::int64_t after_export = peak_bytes();
    ImportSink sink;
    std::uint64_t bytes_seen = 0;
    sink.is_stored = [](const CacheKey&) { return false; };
    sink.store = [&](const CacheKey&, std::string_view bytes) -> Status {
      bytes_seen += bytes.size();
      return {};
    };
    sink.pin = [](const Manifest&) -> Status { return {}; };
    const auto read = import_bundle(bundle_path(), trust(), {}, sink, files);
    if (!read.ok() || bytes_seen != written->entry_bytes) return 3;
    const std::int64_t after_import = peak_bytes();
    if (after_export - before > kMostGrowth) return 4;
    if (after_import - before > kMostGrowth) return 5;
    return 0;
  });
  EXPECT_EQ(child.wait(), 0) << "2, 3: failed; 4: export, 5: import took too much memory";
}

}  // namespace
}  // namespace chord::cache
