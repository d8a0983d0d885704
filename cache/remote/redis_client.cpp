// See redis_client.h.
#include "cache/remote/redis_client.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace chord::cache {
namespace {

constexpr std::size_t kMostIdle = 8;

}  // namespace

RedisClient::RedisClient(RedisAddress address) : address_(std::move(address)) {}

Result<RedisReply> RedisClient::run(const RedisWords& words, std::int64_t deadline_ms,
                                    Repeat repeat) {
  const Deadline deadline(deadline_ms);
  if (Connection kept = take_idle()) {
    Result<RedisReply> reply = kept->exchange(words, deadline);
    const bool may_repeat = repeat == Repeat::once && kept->has_ended() && !deadline.is_over();
    if (reply) give_back(std::move(kept));
    if (reply || !may_repeat) return reply;
  }
  CHORD_TRY(Connection fresh, connect(deadline));
  CHORD_TRY(RedisReply reply, fresh->exchange(words, deadline));
  give_back(std::move(fresh));
  return reply;
}

// A server that was restarted has closed its connections: seen here, before a command is at stake.
RedisClient::Connection RedisClient::take_idle() {
  Pool& pool = pool_.get();
  std::lock_guard lock(pool.mutex);
  while (!pool.idle.empty()) {
    Connection connection = std::move(pool.idle.back());
    pool.idle.pop_back();
    if (!connection->is_stale()) return connection;
  }
  return nullptr;
}

void RedisClient::give_back(Connection connection) {
  Pool& pool = pool_.get();
  std::lock_guard lock(pool.mutex);
  if (pool.idle.size() < kMostIdle) pool.idle.push_back(std::move(connection));
}

Result<RedisClient::Connection> RedisClient::connect(const Deadline& deadline) {
  CHORD_TRY(Connection connection, connect_any(deadline));
  CHORD_TRY(connection->introduce(deadline));
  return connection;
}

// A host of several addresses: each gets its share of the time, for one may hang.
Result<RedisClient::Connection> RedisClient::connect_any(const Deadline& deadline) {
  if (!address_.socket.empty()) return RedisConnection::connect(address_, {}, deadline);
  const Result<std::vector<std::string>> hosts =
      pool_.get().addresses.find(address_.host, deadline);
  if (!hosts)
    return Error{hosts.error().code, fmt::format("connect at {}", address_.name),
                 fmt::format("{}: {}", hosts.error().asked, hosts.error().found),
                 hosts.error().help};
  for (std::size_t i = 0;; ++i) {
    const std::size_t left = hosts.value().size() - i;
    const Deadline share(deadline.left_ms() / static_cast<int>(left));
    Result<Connection> connection = RedisConnection::connect(address_, hosts.value()[i], share);
    if (connection || left == 1 || deadline.is_over()) return connection;
  }
}

}  // namespace chord::cache
