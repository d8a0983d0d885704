// The compile farm: takes recipes from a Redis stream and has them made by the same store of cubins
// that an engine has: looked up first, compiled once over all farms, signed, and published to the
// remote tier where the node that asked finds them. A request belongs to a consumer group: each
// goes to one farm, and what a farm that died had taken is claimed by another.
//
//   FarmServer server(redis, store, cache, options, clock, log);
//   server.run([&] { return stop.load(); });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cache/remote/redis_backend.h"
#include "cache/tiered_cache.h"
#include "chord/platform.h"
#include "src/cubin/cubin_store.h"

namespace chord::farm {

struct FarmOptions {
  std::string label;              // who serves: "pid 4711 (chord-cache) on node7"
  int jobs = 1;                   // compiles at a time
  std::int64_t claim_ms = 30000;  // a request that its farm has not renewed for so long is claimed
  std::int64_t poll_ms = 1000;    // how long a read of the empty stream waits
};

struct FarmCounters {
  std::atomic<std::uint64_t> served{0}, compiled{0}, failed{0}, claimed{0}, given_up{0};
};

class FarmServer {
 public:
  FarmServer(cache::RedisStore redis, cubin::CubinStore& store, cache::TieredCache& cache,
             FarmOptions options, Clock& clock, LogSink log);

  // Serves until `is_over`; a job in work is finished first. Troubles of the store are logged and
  // waited out.
  void run(const std::function<bool()>& is_over);
  const FarmCounters& counters() const { return counters_; }

 private:
  struct Job {
    std::string id;  // of the request in the stream
    std::string recipe;
    std::string reply_to;
    std::string asked_by;
    std::int64_t deliveries = 1;
  };

  void serve(const std::string& consumer, const std::function<bool()>& is_over);
  void announce(const std::function<bool()>& is_over);
  Status make_group();
  Result<std::optional<Job>> claim_abandoned(const std::string& consumer);
  Result<std::optional<Job>> take_next(const std::string& consumer);
  Result<std::int64_t> deliveries_of(const std::string& id);
  std::string work(const std::string& consumer, const Job& job);
  std::string make(const Job& job);
  void drop(const cache::RedisReply& entry);
  void finish(const Job& job, const std::string& reply);
  void renew(const std::string& consumer, const std::string& id);
  Result<cache::RedisReply> run_command(const cache::RedisWords& words, std::int64_t extra_ms = 0);

  cache::RedisStore redis_;
  cubin::CubinStore& store_;
  cache::TieredCache& cache_;
  FarmOptions options_;
  Clock& clock_;
  LogSink log_;
  std::string stream_;
  FarmCounters counters_;
};

}  // namespace chord::farm
