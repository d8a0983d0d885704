// The cubin cache as the engine sees it: find an entry by key, or have it made once.
//
//   CHORD_TRY(auto cache, TieredCache::open(settings, files, clock, log));
//   CHORD_TRY(auto entry, cache->get_or_make(key, [&] { return compile(source); }));
//
// Order: memory, the writable folder, the read-only folders, remote tiers. Promise: nobody compiles
// twice, nobody gets a wrong or broken cubin, no fault of a tier stops the job.
// Opening touches nothing; find only reads; the first publish makes the folder. Safe from several
// threads. Knows nothing of CUDA: a cubin is bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/entry.h"
#include "cache/file_lock.h"
#include "cache/manifest.h"
#include "cache/memory_tier.h"
#include "cache/pruner.h"
#include "cache/single_flight.h"
#include "chord/platform.h"

namespace chord::cache {

struct CacheSettings {
  std::optional<std::string> writable_dir;
  bool writable_dir_was_asked_for = false;  // then a path that can be no folder is an error
  std::string why_no_writable_dir;          // said once, when there is something to publish
  std::vector<std::string> readonly_dirs;
  std::vector<std::shared_ptr<CacheTier>> remote_tiers;
  std::uint64_t max_bytes = std::uint64_t{2} << 30;
  std::uint64_t max_files = 20000;
  std::int64_t wait_ms = 120000;  // for another process that makes the same key
};

// The stored key that is most like a missing one.
struct NearestEntry {
  std::string name;
  std::vector<std::string> differing_fields;
};

struct VerifyReport {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> damaged;  // paths
};

class TieredCache {
 public:
  static Result<std::unique_ptr<TieredCache>> open(CacheSettings settings, FileSystem& files,
                                                   Clock& clock, LogSink log);

  // nullptr: a miss. Writes nothing but the last-use stamp of a hit.
  std::shared_ptr<const Entry> find(const CacheKey& key);

  using Maker = std::function<Result<Entry>()>;
  // Makes a missing entry once over all threads and processes, and publishes it. Fails only if
  // `maker` fails; then nothing is published.
  Result<std::shared_ptr<const Entry>> get_or_make(const CacheKey& key, const Maker& maker);

  // Takes an entry that was made elsewhere, after checking that it is of this key.
  Status adopt(const CacheKey& key, std::string_view bytes);

  // Makes the writable folder; an error says why that can not be. For prewarming, which is
  // pointless without one.
  Status prepare_writable();
  std::optional<std::string> writable_dir() const { return settings_.writable_dir; }

  // Compilers that the folders' entries and pinned manifests are of, most recently used first.
  std::vector<std::string> compiler_identities();
  void record_compiler(const std::string& identity);

  // True when a folder has a whole entry of this key, for the next process; memory is not looked
  // at.
  bool is_stored(const CacheKey& key);

  // Refuses what is there and is no regular file: a folder, a device, a link.
  Status check_manifest_path(const std::string& path);
  // Writes the manifest to `path` (if not empty) and pins it in the writable folder. The path of
  // what was written: `path`, else the pin.
  Result<std::string> write_manifest(const Manifest& manifest, const std::string& path = {});
  Result<Manifest> read_manifest(const std::string& path);

  std::optional<NearestEntry> nearest(const CacheKey& key);
  VerifyReport verify();  // reads every entry of the writable folder
  PruneReport prune();
  CacheCounters counters() const;

 private:
  struct Remote {
    std::shared_ptr<CacheTier> tier;
    std::atomic<std::int64_t> left_alone_until_ns{0};
    std::atomic<bool> was_named{false};
  };
  struct Counts {
    std::atomic<std::uint64_t> memory_hits{0}, disk_hits{0}, readonly_hits{0}, remote_hits{0};
    std::atomic<std::uint64_t> misses{0}, compiles{0}, waits{0}, bad_entries{0};
    std::atomic<std::uint64_t> write_failures{0}, bytes_read{0}, bytes_written{0};
  };
  using Shared = std::shared_ptr<const Entry>;

  TieredCache(CacheSettings settings, FileSystem& files, Clock& clock, LogSink log);

  // A look-up for its own sake leaves damaged entries where they are; one that is about to make the
  // entry sets them aside.
  enum class Damage { leave, set_aside };

  Shared look(const CacheKey& key, Damage damage);
  Shared look_in_writable(const CacheKey& key, Damage damage, std::string& why_not);
  Shared look_in_remotes(const CacheKey& key, Damage damage, std::string& why_not);
  Shared read(CacheTier& tier, const CacheKey& key, Damage damage, std::atomic<std::uint64_t>& hits,
              std::string& why_not);
  void report_no_value(const CacheTier& tier, const TierAnswer& answer);
  bool is_left_alone(const Remote& remote) const;
  void note_failure(Remote& remote, const std::string& reason);

  Result<Shared> make(const CacheKey& key, const Maker& maker);
  KeyLocks::Outcome wait_for_turn(const CacheKey& key, Shared& answer);
  void publish(const CacheKey& key, std::string_view bytes);
  Status write_to_folder(const CacheKey& key, std::string_view bytes);
  void say(std::atomic<bool>& was_said, const std::string& message);

  CacheSettings settings_;
  FileSystem& files_;
  Clock& clock_;
  LogSink log_;
  MemoryTier memory_;
  std::unique_ptr<DiskTier> writable_;
  std::vector<std::unique_ptr<DiskTier>> readonly_;
  std::vector<std::unique_ptr<Remote>> remotes_;
  std::unique_ptr<KeyLocks> locks_;
  std::unique_ptr<Pruner> pruner_;
  SingleFlight flights_;
  Counts counts_;
  std::atomic<bool> said_write_failure_{false};
  std::atomic<bool> said_refused_{false};
  std::atomic<bool> said_failed_{false};
  std::atomic<bool> said_damaged_{false};
};

}  // namespace chord::cache
