// The remote tier's objects as strings of a Redis server: <prefix>v<schema>:<name of the key>.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cache/remote/backend.h"
#include "cache/remote/redis_client.h"
#include "cache/remote/remote_url.h"

namespace chord::cache {

struct RedisPlace {
  std::string prefix = "chord:";
  std::int64_t ttl_s = 0;  // 0: objects stay until the server evicts them
  std::int64_t deadline_ms = 1000;
};

// A server and where in it our things lie, for whoever needs more of Redis than the back-end does.
struct RedisStore {
  std::shared_ptr<RedisClient> client;
  RedisPlace place;
};

// Connects to nothing. Refuses a URL of another scheme.
Result<RedisStore> open_redis(const RemoteSettings& settings);

class RedisBackend final : public RemoteBackend {
 public:
  RedisBackend(std::shared_ptr<RedisClient> client, RedisPlace place);

  std::string name() const override { return client_->address().name; }
  TierAnswer get(const CacheKey& key) override;
  TierAnswer head(const CacheKey& key) override;
  Status put(const CacheKey& key, std::string_view bytes) override;
  Status remove(const CacheKey& key) override;
  std::shared_ptr<LeaseService> leases() override { return leases_; }

  std::string object_name(const CacheKey& key) const;

 private:
  Result<RedisReply> run(const RedisWords& words);
  Error unexpected(std::string_view command, const RedisReply& reply) const;

  std::shared_ptr<RedisClient> client_;
  RedisPlace place_;
  std::shared_ptr<LeaseService> leases_;
};

}  // namespace chord::cache
