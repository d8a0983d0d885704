// A node's side of the compile farm: a request on the Redis stream that the farm reads
// (farm_server.h), and a wait for the reply that ends at a deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/breaker.h"
#include "cache/remote/redis_backend.h"
#include "cache/remote/remote_url.h"
#include "src/cubin/compile_farm.h"
#include "src/farm/message.h"

namespace chord::farm {

class FarmClient final : public cubin::CompileFarm {
 public:
  FarmClient(cache::RedisStore store, std::string asked_by, std::int64_t deadline_ms,
             const Clock& clock)
      : store_(std::move(store)),
        asked_by_(std::move(asked_by)),
        deadline_ms_(deadline_ms),
        clock_(clock),
        breaker_(clock) {}

  Result<std::string> request(const cubin::Recipe& recipe) override;

 private:
  Result<FarmReply> ask(const cubin::Recipe& recipe);
  Error failed(const cubin::Recipe& recipe, std::string found, std::string help = {}) const;

  cache::RedisStore store_;
  std::string asked_by_;
  std::int64_t deadline_ms_;
  const Clock& clock_;
  cache::Breaker breaker_;  // a farm that does not answer is not waited for by every kernel
};

// Refuses a store that has no streams.
Result<std::unique_ptr<cubin::CompileFarm>> make_farm_client(const cache::RemoteSettings& settings,
                                                             std::string asked_by,
                                                             std::int64_t deadline_ms,
                                                             const Clock& clock);

}  // namespace chord::farm
