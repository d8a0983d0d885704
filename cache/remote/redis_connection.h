// One connection to a Redis server, over hiredis, which no other file includes. Every step is given
// the deadline of the whole call: the socket never blocks, and each wait is for what is left.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/remote/deadline.h"
#include "cache/remote/redis_reply.h"
#include "chord/status.h"

struct redisContext;

namespace chord::cache {

struct RedisAddress {
  std::string name;  // for people: host and place, never a secret
  std::string host;
  int port = 6379;
  std::string socket;  // path of a unix socket; host and port are then of no use
  std::string user;
  std::string password;
  int database = 0;
  bool is_tls = false;
  std::string ca_file;  // of TLS; empty: those of the system
};

using RedisWords = std::vector<std::string_view>;

class RedisConnection {
 public:
  // To `numeric_host`, which is of no use for a socket. `address` has to outlive the connection.
  static Result<std::unique_ptr<RedisConnection>> connect(const RedisAddress& address,
                                                          const std::string& numeric_host,
                                                          const Deadline& deadline);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Says who we are and picks the database; comes before the first exchange.
  Status introduce(const Deadline& deadline);
  // An answer of the server that is an error is a reply. After an Error this object is of no use.
  Result<RedisReply> exchange(const RedisWords& words, const Deadline& deadline);

  // Between two calls: the other side has closed it, or has said something unasked.
  bool is_stale() const;
  // The Error of the last exchange was that the connection had ended.
  bool has_ended() const { return has_ended_; }

 private:
  RedisConnection(const RedisAddress& address, redisContext* context);
  Status finish_connect(const Deadline& deadline);
  Status expect_ok(const RedisWords& words, const Deadline& deadline, std::string_view help);
  Status send(const RedisWords& words, const Deadline& deadline);
  Result<RedisReply> receive(std::string_view command, const Deadline& deadline);
  // What has come, without waiting; false: nothing.
  Result<bool> read_some(std::string_view command);
  bool wait_for(short events, int ms) const;
  Error failure(std::string_view command);
  Error error(ErrorCode code, std::string_view command, std::string found,
              std::string help = {}) const;

  const RedisAddress& address_;
  redisContext* context_;
  std::size_t received_ = 0;  // bytes of the reply that is being read
  bool has_ended_ = false;
};

}  // namespace chord::cache
