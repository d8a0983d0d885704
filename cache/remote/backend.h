// What a remote store has to do: keep bytes by object name. Redis, HTTP and whatever comes next are
// one class each on this interface and one row of the scheme table (remote_url.h). Knows no entry,
// no signature and no compression: remote_tier.h puts those around it.
//
// Every call ends within the deadline that the back-end was made with, connecting included,
// whatever the other side does. Calls come from several threads at once, and from a child after a
// fork.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cache/lease.h"
#include "chord/cache_tier.h"
#include "chord/status.h"

namespace chord::cache {

// Far above any entry on the wire; keeps a wrong object from filling the memory.
inline constexpr std::size_t kMaxObjectBytes = std::size_t{64} << 20;

class RemoteBackend {
 public:
  virtual ~RemoteBackend() = default;
  virtual std::string name() const = 0;  // for logs: host and place, never a secret

  // value with the bytes, absent, refused (something is there that is no object of ours) or failed.
  virtual TierAnswer get(const CacheKey& key) = 0;
  // value (without bytes) or absent: whether there is an object, at the price of no transfer.
  virtual TierAnswer head(const CacheKey& key) = 0;
  virtual Status put(const CacheKey& key, std::string_view bytes) = 0;
  virtual Status remove(const CacheKey& key) = 0;

  // Leases of this store; nullptr where it has none.
  virtual std::shared_ptr<LeaseService> leases() { return nullptr; }
};

}  // namespace chord::cache
