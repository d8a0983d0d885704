// Commands to one Redis server from any thread, over a few connections that are kept open. Connects
// at the first command; a child of a fork has its own connections.
//
//   RedisClient client({.name = "redis://host", .host = "host"});
//   CHORD_TRY(const RedisReply reply, client.run({"GET", key}, 1000));
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/remote/host_addresses.h"
#include "cache/remote/per_process.h"
#include "cache/remote/redis_connection.h"
#include "cache/remote/redis_reply.h"
#include "chord/status.h"

namespace chord::cache {

// What may be done with a command that went out on a kept connection which then ended unanswered.
enum class Repeat {
  never,  // the server may have done it: BLPOP would lose a job, XADD would add one twice
  once,   // on a fresh connection: doing it twice is doing it once
};

class RedisClient {
 public:
  explicit RedisClient(RedisAddress address);

  // Ends within the deadline, connecting and introducing ourselves included. A reply that is an
  // error of the server is a value; an Error is that there was no reply. Neither has the password.
  Result<RedisReply> run(const RedisWords& words, std::int64_t deadline_ms,
                         Repeat repeat = Repeat::never);

  const RedisAddress& address() const { return address_; }

 private:
  using Connection = std::unique_ptr<RedisConnection>;
  struct Pool {
    std::mutex mutex;
    std::vector<Connection> idle;
    HostAddresses addresses;
  };

  Connection take_idle();
  void give_back(Connection connection);
  Result<Connection> connect(const Deadline& deadline);
  Result<Connection> connect_any(const Deadline& deadline);

  const RedisAddress address_;
  PerProcess<Pool> pool_;
};

}  // namespace chord::cache
