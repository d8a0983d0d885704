// The remote tiers of a cache: asked in turn while their breakers let anybody through, written to
// where that is allowed, and, if one hands out leases, the place where a fleet agrees who makes a
// key. No failure of theirs is an error: each is named once and left alone for a while.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/breaker.h"
#include "cache/lease.h"
#include "cache/tier_reader.h"
#include "chord/cache_tier.h"
#include "chord/platform.h"

namespace chord::cache {

class Remotes {
 public:
  // `leases` may be empty; they are those of the first tier that can be written.
  Remotes(const std::vector<std::shared_ptr<CacheTier>>& tiers,
          std::shared_ptr<LeaseService> leases, Reporter& reporter, const TierReader& reader,
          const Clock& clock);

  bool empty() const { return slots_.empty(); }
  bool may_write() const;

  // The first entry that may be loaded. Reasons why not are appended to `why_not`.
  SharedEntry find(const CacheKey& key, Damage damage, std::string& why_not);
  // Into every tier that may be written, whatever is there.
  void publish(const CacheKey& key, std::string_view bytes);
  // Into every tier that may be written and has nothing there that may be loaded; how many took it.
  int share(const CacheKey& key, std::string_view bytes);

  // Whether one has an entry that may be loaded.
  bool holds(const CacheKey& key);
  // False while one is left alone: that it has nothing is not known then.
  bool can_be_asked() const;

  struct Turn {
    std::unique_ptr<KeyLease> lease;  // empty: go on without
    SharedEntry entry;                // somebody else has made it meanwhile
    bool waited = false;
  };
  // Takes the fleet's lease of a key. While somebody else holds it, waits until the entry is there,
  // the lease is free, or wait_ms are over.
  Turn wait_for_turn(const CacheKey& key, std::int64_t wait_ms);

  // The tiers themselves, for questions beside the look-ups; breakers do not hold them back.
  std::vector<CacheTier*> tiers() const;

  std::vector<RemoteCounters> counters() const;

 private:
  struct Slot {
    Slot(std::shared_ptr<CacheTier> the_tier, const Clock& clock)
        : tier(std::move(the_tier)), breaker(clock), write_breaker(clock) {}
    std::shared_ptr<CacheTier> tier;
    Breaker breaker;
    Breaker write_breaker;  // a store that is full or read-only still answers
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> failures{0};
    std::atomic<bool> was_named{false};
  };

  // An entry that may be loaded from this very tier.
  bool holds(Slot& slot, const CacheKey& key);
  // Not while reading fails: a dead store costs one deadline, not one more for every write.
  static bool may_be_written(Slot& slot);
  void note_success(Slot& slot, Breaker& breaker);
  void note_failure(Slot& slot, Breaker& breaker, const std::string& reason);
  bool put(Slot& slot, const CacheKey& key, std::string_view bytes);

  std::vector<std::unique_ptr<Slot>> slots_;
  std::shared_ptr<LeaseService> leases_;
  Slot* leasing_ = nullptr;  // the tier whose leases they are
  Reporter& reporter_;
  const TierReader& reader_;
  const Clock& clock_;
};

}  // namespace chord::cache
