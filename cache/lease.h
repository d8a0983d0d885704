// One maker per key in a fleet, as an interface: a lease that a remote store hands out. Only saves
// work, as the lock files do on one machine: whoever gets no answer goes on without.
#pragma once

#include <memory>
#include <string>

#include "chord/cache_tier.h"

namespace chord::cache {

// Held while it lives: kept alive by its own means, given back at its end, and taken over by
// somebody else some time after its process has died.
class KeyLease {
 public:
  virtual ~KeyLease() = default;
};

struct LeaseAnswer {
  std::unique_ptr<KeyLease> held;
  std::string holder;   // who holds it when `held` is empty
  std::string failure;  // why nobody could be asked; empty otherwise
};

class LeaseService {
 public:
  virtual ~LeaseService() = default;
  // Never waits for the holder; ends within the deadline of its store.
  virtual LeaseAnswer try_take(const CacheKey& key) = 0;
};

}  // namespace chord::cache
