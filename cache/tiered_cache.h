// The cubin cache as the engine sees it: find an entry by key, or have it made once.
//
//   CHORD_TRY(auto cache, TieredCache::open(settings, files, clock, log));
//   CHORD_TRY(auto entry, cache->get_or_make(key, [&] { return compile(source); }));
//
// Order: memory, the writable folder, the read-only folders, remote tiers. Promise: nobody compiles
// twice, nobody gets a wrong or broken cubin, no fault of a tier stops the job. What a remote tier
// gave is kept in the writable folder, so that it is asked once.
// Opening touches nothing; find only reads; the first publish makes the folder. Safe from several
// threads. Knows nothing of CUDA: a cubin is bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/entry.h"
#include "cache/file_lock.h"
#include "cache/lease.h"
#include "cache/manifest.h"
#include "cache/memory_tier.h"
#include "cache/pruner.h"
#include "cache/remotes.h"
#include "cache/reporter.h"
#include "cache/signatures.h"
#include "cache/single_flight.h"
#include "cache/tier_reader.h"
#include "chord/cache_events.h"
#include "chord/platform.h"

namespace chord::cache {

struct CacheSettings {
  std::optional<std::string> writable_dir;
  bool writable_dir_was_asked_for = false;  // then a path that can be no folder is an error
  std::string why_no_writable_dir;          // said once, when there is something to publish
  std::vector<std::string> readonly_dirs;
  std::vector<std::shared_ptr<CacheTier>> remote_tiers;
  std::shared_ptr<LeaseService> leases;  // of the first remote tier that may be written
  Signatures signatures;
  std::uint64_t max_bytes = std::uint64_t{2} << 30;
  std::uint64_t max_files = 20000;
  std::int64_t max_age_ns = 0;    // 0: no bound
  std::int64_t wait_ms = 120000;  // for another process that makes the same key
  CacheEventSink on_event;
};

// The stored key that is most like a missing one.
struct NearestEntry {
  std::string name;
  std::vector<std::string> differing_fields;
};

// What one tier said of a key.
struct TierReport {
  std::string tier;
  MissReason reason = MissReason::none;  // none: it has the entry, and it may be loaded
  std::string text;                      // why not
};

struct CoverageReport {
  std::uint64_t keys = 0;
  std::vector<ManifestKey> missing;
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
  SharedEntry find(const CacheKey& key);
  // The same for an entry that is going to be used: a damaged one is set aside, and what a remote
  // tier gave is kept in the writable folder.
  SharedEntry fetch(const CacheKey& key);

  using Maker = std::function<Result<Entry>()>;
  // Makes a missing entry once over all threads, processes and, with leases, machines, signs it if
  // there is a key for that, and publishes it. Fails only if `maker` fails; then nothing is
  // published.
  Result<SharedEntry> get_or_make(const CacheKey& key, const Maker& maker);

  // Takes an entry that was made elsewhere, after checking that it is of this key and that somebody
  // who is trusted vouches for it.
  Status adopt(const CacheKey& key, std::string_view bytes);
  // Signs an entry of this machine that nobody, or nobody who is still trusted, has signed, and
  // keeps it so; the entry itself where there is nothing to do or no key to do it with.
  SharedEntry vouch(SharedEntry entry);
  // Writes an entry to the remote tiers that lack it; how many took it.
  int share(const Entry& entry);
  // Whether a remote tier has it, and what is there may be loaded.
  bool is_shared(const CacheKey& key);
  bool may_share() const { return remotes_->may_write(); }

  // Makes the writable folder; an error says why that can not be. For prewarming, which is
  // pointless without one.
  Status prepare_writable();
  std::optional<std::string> writable_dir() const { return settings_.writable_dir; }

  // Compilers that the folders' entries and pinned manifests are of, most recently used first.
  std::vector<std::string> compiler_identities();
  // The same of the remote tiers; asked at most once a minute.
  std::vector<std::string> remote_compiler_identities();
  void record_compiler(const std::string& identity);
  // For this process alone: of a manifest that it was given.
  void learn_compiler(const std::string& identity);

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
  // Asks every tier, counts nothing and changes nothing but last-use stamps. A key without text
  // stands for whatever entry has its name.
  std::vector<TierReport> inquire(const CacheKey& key);
  // Which keys of a manifest no tier has.
  CoverageReport coverage(const Manifest& manifest);
  VerifyReport verify();  // reads every entry of the writable folder
  PruneReport prune();
  CacheCounters counters() const;

 private:
  TieredCache(CacheSettings settings, FileSystem& files, Clock& clock, LogSink log);

  bool may_keep_what_is_made() const;
  SharedEntry look(const CacheKey& key, Damage damage);
  SharedEntry look_in_writable(const CacheKey& key, Damage damage, std::string& why_not);
  SharedEntry look_in_folder(DiskTier& tier, const CacheKey& key, Damage damage,
                             std::atomic<std::uint64_t>& hits, std::string& why_not);
  SharedEntry look_in_remotes(const CacheKey& key, Damage damage, std::string& why_not);

  Result<SharedEntry> make(const CacheKey& key, const Maker& maker);
  KeyLocks::Outcome wait_for_turn(const CacheKey& key, SharedEntry& answer);
  void back_fill(const CacheKey& key, const Entry& entry);
  void publish(const CacheKey& key, std::string_view bytes);
  void publish_to_folder(const CacheKey& key, std::string_view bytes);
  Status write_to_folder(const CacheKey& key, std::string_view bytes);
  void record_compiler_in_remotes(const std::string& identity);
  TierReport ask(CacheTier& tier, TierOrigin origin, const CacheKey& key) const;

  CacheSettings settings_;
  FileSystem& files_;
  Clock& clock_;
  Reporter reporter_;
  TierReader reader_;
  MemoryTier memory_;
  std::unique_ptr<DiskTier> writable_;
  std::vector<std::unique_ptr<DiskTier>> readonly_;
  std::unique_ptr<Remotes> remotes_;
  std::unique_ptr<KeyLocks> locks_;
  std::unique_ptr<Pruner> pruner_;
  SingleFlight flights_;

  std::mutex compilers_mutex_;  // held for moments only, never while a tier is asked
  std::vector<std::string> learnt_compilers_;
  std::vector<std::string> remote_compilers_;
  std::int64_t remote_compilers_until_ns_ = 0;  // when they are asked for again
};

}  // namespace chord::cache
