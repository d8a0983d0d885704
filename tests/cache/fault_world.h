// One random schedule of faults: a few processes (cache objects) on one or two folders, a few keys,
// a file layer that lies and fails, steps in a random order. Everything follows from the number of
// the schedule.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/tiered_cache.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/log_recorder.h"

namespace chord::cache {

inline constexpr std::size_t kKeys = 3;
struct KnownEntry {
  CacheKey key;
  Entry entry;
};
// What everybody should get: of different lengths.
const std::array<KnownEntry, kKeys>& known();

// What the schedules did, so that a test can tell that they did something.
struct FaultCounts {
  std::uint64_t faults = 0;
  std::uint64_t steps = 0;
  std::uint64_t served = 0;
  std::uint64_t compiles = 0;
  std::uint64_t failed_makers = 0;
  std::uint64_t bad_entries = 0;
  std::uint64_t write_failures = 0;
  std::uint64_t evictions = 0;
  std::uint64_t warnings = 0;
};

class FaultWorld {
 public:
  using ChangeMode = std::function<void(const std::string& path, std::uint32_t mode)>;

  // `folder` is missing or empty. The clock must be the one of `disk`.
  FaultWorld(std::uint32_t number, std::string folder, FileSystem& disk, testing::FakeClock& clock,
             ChangeMode change_mode, FaultCounts& counts);

  // What broke the promise, with the step; empty if nothing did.
  std::string run();

 private:
  using Effect = testing::Effect;
  using Answer = Result<std::shared_ptr<const Entry>>;

  struct Rule {
    std::string call;  // empty: any
    std::string part;  // of the path; empty: any
    Effect effect = Effect::none;
    int error_number = 0;
    std::uint32_t percent = 0;
    std::uint64_t first = 0;  // of the calls of this schedule
    std::uint64_t last = 0;
  };

  std::uint32_t below(std::uint32_t bound) { return random_() % bound; }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <class T, std::size_t n>
  const T& any_of(const T (&list)[n]) {
    return list[below(n)];
  }

  Rule make_rule();
  testing::Fault fault(std::string_view call, const std::string& path);
  CacheSettings make_settings();
  void open(std::size_t process);
  LogSink sink(std::size_t process);

  void step();
  void get_or_make(std::size_t process, std::size_t key, std::size_t depth);
  Result<Entry> make(std::size_t process, std::size_t key, std::size_t depth,
                     std::string& asked_for);
  void disturb();
  void record();
  void check(const std::shared_ptr<const Entry>& entry, std::size_t key, const char* by);
  void fail(const std::string& what);

  void heal();
  void check_healed(const std::string& root);
  void check_tree(const std::string& root);
  // Calls visit(path, stat) for everything below a folder.
  template <class Visit>
  void walk(const std::string& folder, Visit visit);

  std::mt19937 random_;
  std::string folder_;
  FaultCounts& counts_;
  FileSystem& disk_;
  testing::FaultFileSystem files_{disk_};
  testing::FakeClock& clock_;
  ChangeMode change_mode_;
  std::vector<std::string> roots_;
  std::vector<CacheSettings> settings_;
  std::vector<std::unique_ptr<TieredCache>> processes_;
  std::vector<Rule> rules_;
  std::uint64_t calls_ = 0;
  std::string problem_;

  std::uint64_t opened_ = 0;
  std::uint64_t makes_ = 0;
  std::uint64_t waits_said_ = 0;
  std::uint64_t warnings_ = 0;
  std::set<std::string> pins_said_;
};

}  // namespace chord::cache
