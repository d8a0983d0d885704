// What a cache did: counters, one event per thing that happened, and both as Prometheus text.
//
//   options.on_cache_event = [](const chord::CacheEvent& event) { ... };
//   std::string page = chord::prometheus_text(engine.counters());
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/export.h"

namespace chord {

// Why a tier that was asked gave no entry that may be loaded.
enum class MissReason {
  none,
  absent,
  untrusted,       // owner, mode or a symbolic link of a file or folder
  damaged,         // cut, changed, or not an entry
  older_schema,    // of another version of this library
  other_key,       // a whole entry, but of another key
  not_signed,      // and it had to be
  unknown_signer,  // signed by a key that is not among the trusted ones
  bad_signature,   // not the signer's signature of this entry
  failed,          // the tier could not look
};
inline constexpr std::size_t kMissReasons = 10;
CHORD_API const char* name(MissReason reason);

enum class BreakerState { closed, open, half_open };
CHORD_API const char* name(BreakerState state);

struct RemoteCounters {
  std::string name;                                   // of the store, without secrets
  BreakerState breaker = BreakerState::closed;        // of reading
  BreakerState write_breaker = BreakerState::closed;  // of writing and of leases
  std::uint64_t hits = 0;
  std::uint64_t failures = 0;  // calls that failed or ran out of time
  std::uint64_t opened = 0;    // times the breaker opened
};

// Counters of one cache; monotone.
struct CacheCounters {
  std::uint64_t memory_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t readonly_hits = 0;
  std::uint64_t remote_hits = 0;
  std::uint64_t misses = 0;  // look-ups that no tier could answer
  std::uint64_t compiles = 0;
  std::uint64_t waits = 0;        // times another compile of the same key was waited for
  std::uint64_t bad_entries = 0;  // set aside: damaged, wrong key, not trusted
  std::uint64_t write_failures = 0;
  std::uint64_t evictions = 0;
  std::uint64_t bytes_read = 0;  // from folders and remote tiers
  std::uint64_t bytes_written = 0;
  // By MissReason: answers of single tiers, so that one look-up may count several times.
  std::array<std::uint64_t, kMissReasons> no_value{};
  std::vector<RemoteCounters> remotes;
};

struct CacheEvent {
  enum class Kind { hit, miss, compile, wait, bad_entry, write, write_failure, breaker };
  Kind kind = Kind::hit;
  std::string_view key = {};   // its name; empty for an event that is of no key
  std::string_view tier = {};  // "memory", "folder /a/b", "redis://host:6379/0"
  MissReason reason = MissReason::none;
  std::string_view text = {};  // the reason in words
  std::uint64_t bytes = 0;
};
CHORD_API const char* name(CacheEvent::Kind kind);

// Called on the thread that did it, and must not call the cache back.
using CacheEventSink = std::function<void(const CacheEvent&)>;

// The text exposition format of Prometheus (version 0.0.4): chord_cache_hits_total{tier="memory"}
// and so on, each with HELP and TYPE.
CHORD_API std::string prometheus_text(const CacheCounters& counters);

}  // namespace chord
