// Keeps a cache folder within its bounds. Runs beside a publish (which follows a compile), never on
// a hit; one process at a time, and without harm where locks do nothing. Readers need no care: who
// has opened a file keeps it.
//
// By bytes and files: least recently used first, by the stamp that a hit leaves (the modification
// time). Stamps are only compared with each other; one from the future counts as now. An entry that
// was used between the look at it and its turn stays.
//
// By age: entries that nobody has read from the folder for max_age_ns. Here a stamp is compared
// with the clock, and the stamps of an image layer or an unpacked archive may all say 1970 or 2000.
// So the later of the stamp and the file's change time counts, which no program can set: copied
// files are as old as their arrival on this machine.
//
// Other schemas share the folder, so that two versions of this library can take turns. All files
// count. Entries of older schemas are evicted as ours are, and go when nobody used them for 30
// days; those of newer ones are left to the library that made them.
//
// Entries that a pin lists stay, whatever the bounds say; while pins can not be read, all stay.
// Temporaries and locks of processes that died are swept. Nothing is removed whose name this
// library would not have given.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "cache/pins.h"
#include "chord/platform.h"

namespace chord::cache {

struct Limits {
  std::uint64_t max_bytes = 0;
  std::uint64_t max_files = 0;
  std::int64_t max_age_ns = 0;  // 0: none
};

struct Usage {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

struct PruneReport {
  bool ran = false;  // false: another process prunes, or the folder can not be read
  Usage usage;       // afterwards
  std::uint64_t evicted = 0;
  std::uint64_t expired = 0;  // those of the evicted that went by age
  std::uint64_t swept = 0;    // temporaries, locks, unused entries of older schemas
};

class Pruner {
 public:
  Pruner(Layout layout, Limits limits, FileSystem& files, const Clock& clock, LogSink log);

  // Before a publish of that many bytes. Cheap as long as the estimate is below the bounds; looks
  // at the folder again after a small share of the bounds, because other processes write, too.
  void make_room(std::uint64_t bytes);
  // Sweeps, and evicts until `room` more bytes in one more file fit.
  PruneReport prune(std::uint64_t room);
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Found {
    std::string path;
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t stamp_ns = 0;     // as read
    std::int64_t last_use_ns = 0;  // the stamp, at most now
    std::int64_t unused_ns = 0;    // since the stamp or the arrival
    bool is_older_schema = false;
  };

  std::vector<Found> scan(PruneReport& report);
  void scan_schema(const std::string& folder, int schema, std::vector<Found>& found,
                   PruneReport& report);
  void scan_shard(const std::string& shard, int schema, std::vector<Found>& found,
                  PruneReport& report);
  bool sweep_temporary(const std::string& path, const FileStat& stat, PruneReport& report);
  void sweep_temporaries(const std::string& folder, PruneReport& report);
  void sweep_locks(PruneReport& report);
  void sweep_file(const std::string& path, PruneReport& report);
  bool fits(const Usage& usage, std::uint64_t room, std::uint64_t slack_share) const;
  bool is_unused_too_long(const Found& entry) const;
  void evict(std::vector<Found>& found, std::uint64_t room, PruneReport& report);
  void evict_unused(std::vector<Found>& found, PruneReport& report);
  void evict_oldest(std::vector<Found>& found, std::uint64_t room, PruneReport& report);
  bool drop(const Found& entry, PruneReport& report);
  void warn(const std::string& message);

  Layout layout_;
  Limits limits_;
  FileSystem& files_;
  const Clock& clock_;
  LogSink log_;
  std::atomic<std::uint64_t> evictions_{0};
  std::mutex said_mutex_;
  std::set<std::string> said_;  // a pruner runs often: each warning is said once

  std::mutex mutex_;
  bool is_known_ = false;
  Usage usage_;    // what the last scan found and this process has added
  Usage written_;  // by this process since then
};

}  // namespace chord::cache
