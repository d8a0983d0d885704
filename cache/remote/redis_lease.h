// Leases as keys of a Redis server that expire: <prefix>lease:<name of the key> holds a token of
// the holder's. One thread per process extends those that are held; extending and giving back touch
// a lease only while it is still ours, so that a process that slept too long does no harm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/lease.h"
#include "cache/remote/redis_client.h"

namespace chord::cache {

struct RedisLeaseSettings {
  std::string prefix = "chord:";
  std::int64_t deadline_ms = 1000;  // of one call
  std::int64_t ttl_ms = 15000;      // after the death of its holder a lease lasts so long
};

class RedisLeases final : public LeaseService {
 public:
  RedisLeases(std::shared_ptr<RedisClient> client, RedisLeaseSettings settings);
  LeaseAnswer try_take(const CacheKey& key) override;

  class Keeper;

 private:
  struct Renewals;
  std::shared_ptr<Keeper> keeper_;
};

}  // namespace chord::cache
