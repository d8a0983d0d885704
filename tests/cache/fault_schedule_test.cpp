// The promise under ten thousand random schedules of faults: whatever fails, a caller gets the
// right kernel or its maker's error, no bad entry is served, and a healed folder is whole again.
//
// A failure names its schedule; CHORD_TEST_SCHEDULE=<number> runs that one alone.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "src/base/posix_file_system.h"
#include "tests/cache/fault_world.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/sanitizer.h"
#include "tests/support/temporary_folder.h"

namespace chord::cache {
namespace {

// Fewer under a sanitizer, which looks for what is wrong in any of them.
constexpr std::uint32_t kSchedules = testing::kSanitized ? 500 : 10000;
// A kernel takes fifty times as long as a map.
constexpr std::uint32_t kSchedulesOnDisk = testing::kSanitized ? 50 : 200;
constexpr int kMostReported = 5;

std::string run_in_memory(std::uint32_t number, FaultCounts& counts) {
  testing::FakeClock clock;
  testing::MemoryFileSystem disk(clock);
  const auto change_mode = [&](const std::string& path, std::uint32_t mode) {
    disk.change_mode(path, mode);
  };
  return FaultWorld(number, "/caches", disk, clock, change_mode, counts).run();
}

std::string run_on_disk(std::uint32_t number, FaultCounts& counts) {
  const testing::TemporaryFolder folder;
  testing::FakeClock clock;
  base::PosixFileSystem disk;
  const auto change_mode = [](const std::string& path, std::uint32_t mode) {
    (void)::chmod(path.c_str(), mode);
  };
  return FaultWorld(number, folder.path(), disk, clock, change_mode, counts).run();
}

template <class Run>
FaultCounts run_schedules(std::uint32_t count, Run run) {
  FaultCounts counts;
  std::uint32_t first = 0;
  if (const char* only = std::getenv("CHORD_TEST_SCHEDULE")) {
    first = static_cast<std::uint32_t>(std::strtoul(only, nullptr, 10));
    count = 1;
  }
  int reported = 0;
  for (std::uint32_t number = first; number < first + count; ++number) {
    const std::string problem = run(number, counts);
    if (problem.empty()) continue;
    ADD_FAILURE() << "CHORD_TEST_SCHEDULE=" << number << ": " << problem;
    if (++reported == kMostReported) break;
  }
  return counts;
}

// Schedules in which nothing happens would prove nothing.
void expect_busy(const FaultCounts& counts, std::uint64_t schedules) {
  if (std::getenv("CHORD_TEST_SCHEDULE") != nullptr) return;
  EXPECT_GT(counts.faults, schedules * 5);
  EXPECT_GT(counts.served, schedules * 5);
  EXPECT_GT(counts.failed_makers, schedules / 10);
  EXPECT_GT(counts.bad_entries, schedules / 10);
  EXPECT_GT(counts.write_failures, schedules / 10);
  EXPECT_GT(counts.evictions, schedules / 20);
}

TEST(FaultSchedules, ServeTheRightKernelOrTheMakersErrorWhateverFails) {
  expect_busy(run_schedules(kSchedules, run_in_memory), kSchedules);
}

TEST(FaultSchedules, DoSoOnARealFileSystem) {
  expect_busy(run_schedules(kSchedulesOnDisk, run_on_disk), kSchedulesOnDisk);
}

}  // namespace
}  // namespace chord::cache
