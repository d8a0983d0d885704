// Keeps a cache folder within its bounds. Runs beside a publish (which follows a compile), never on
// a hit; one process at a time. Readers need no care: who has opened a file keeps it.
//
// Least recently used first, by the stamp that a hit leaves; a stamp from the future counts as now.
// Entries that a pinned manifest lists stay, even above the bound. Swept as well: entries of older
// schemas, temporaries and locks of processes that died.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "cache/layout.h"
#include "chord/platform.h"

namespace chord::cache {

struct Limits {
  std::uint64_t max_bytes = 0;
  std::uint64_t max_files = 0;
};

struct Usage {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

struct PruneReport {
  bool ran = false;  // false: another process prunes, or the folder can not be read
  Usage usage;       // afterwards
  std::uint64_t evicted = 0;
  std::uint64_t swept = 0;  // temporaries, locks, files of older schemas
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
    std::int64_t stamp_ns = 0;
  };

  std::vector<Found> scan(PruneReport& report);
  void scan_shard(const std::string& shard, std::vector<Found>& found, PruneReport& report);
  void sweep_locks(PruneReport& report);
  void sweep_older_schemas(PruneReport& report);
  void sweep_tree(const std::string& path, int depth, PruneReport& report);
  void sweep_file(const std::string& path, PruneReport& report);
  void evict(std::vector<Found> found, std::uint64_t room, PruneReport& report);
  std::unordered_set<std::string> pinned_names();

  Layout layout_;
  Limits limits_;
  FileSystem& files_;
  const Clock& clock_;
  LogSink log_;
  std::atomic<std::uint64_t> evictions_{0};

  std::mutex mutex_;
  bool is_known_ = false;
  Usage usage_;    // what the last scan found and this process has added
  Usage written_;  // by this process since then
};

}  // namespace chord::cache
