// See redis_connection.h.
#include "cache/remote/redis_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "cache/remote/backend.h"
#include "cache/remote/redis_tls.h"
#include "cache/remote/sigpipe_guard.h"

namespace chord::cache {
namespace {

// Around the bytes of one object come its length and line ends.
constexpr std::size_t kMaxReplyBytes = kMaxObjectBytes + 4096;
constexpr std::size_t kMaxElements = std::size_t{1} << 16;
constexpr int kMaxDepth = 8;
// A TLS connection that can not write may be waiting for bytes to read.
constexpr int kTlsTurnMs = 2;

template <class Count>
using ArrayMaker = void* (*)(const redisReadTask*, Count);
template <class Count>
ArrayMaker<Count> make_any_array = nullptr;

// hiredis allocates an array as long as the other side claims it to be, and frees a nest of them by
// recursion. nullptr ends the reading with an error.
template <class Count>
void* make_small_array(const redisReadTask* task, Count count) {
  int depth = 0;
  for (const redisReadTask* at = task; at != nullptr; at = at->parent) ++depth;
  if (depth > kMaxDepth || static_cast<std::size_t>(count) > kMaxElements) return nullptr;
  return make_any_array<Count>(task, count);
}

template <class Count>
void bound(ArrayMaker<Count>& maker) {
  make_any_array<Count> = std::exchange(maker, make_small_array<Count>);
}

void bound_arrays(redisReader& reader) {
  static redisReplyObjectFunctions functions = [&] {
    redisReplyObjectFunctions own = *reader.fn;
    bound(own.createArray);
    return own;
  }();
  reader.fn = &functions;
}

RedisReply value_of(const redisReply& reply) {
  RedisReply value;
  if (reply.type == REDIS_REPLY_NIL) return value;
  value.kind = reply.type == REDIS_REPLY_INTEGER ? RedisReply::Kind::integer
               : reply.type == REDIS_REPLY_ERROR ? RedisReply::Kind::error
               : reply.str != nullptr            ? RedisReply::Kind::text
                                                 : RedisReply::Kind::array;
  value.integer = reply.integer;
  if (reply.str != nullptr) value.text.assign(reply.str, reply.len);
  for (std::size_t i = 0; i < reply.elements; ++i)
    value.elements.push_back(reply.element[i] ? value_of(*reply.element[i]) : RedisReply{});
  return value;
}

}  // namespace

RedisConnection::RedisConnection(const RedisAddress& address, redisContext* context)
    : address_(address), context_(context) {}

RedisConnection::~RedisConnection() {
  const SigpipeGuard guard;
  redisFree(context_);
}

Result<std::unique_ptr<RedisConnection>> RedisConnection::connect(const RedisAddress& address,
                                                                  const std::string& numeric_host,
                                                                  const Deadline& deadline) {
  const SigpipeGuard guard;
  redisContext* context = address.socket.empty()
                              ? redisConnectNonBlock(numeric_host.c_str(), address.port)
                              : redisConnectUnixNonBlock(address.socket.c_str());
  std::unique_ptr<RedisConnection> connection(new RedisConnection(address, context));
  if (context == nullptr || context->err != 0) return connection->failure("connect");
  (void)::fcntl(context->fd, F_SETFD, FD_CLOEXEC);
  bound_arrays(*context->reader);
  CHORD_TRY(connection->finish_connect(deadline));
  if (address.is_tls) CHORD_TRY(start_redis_tls(*context, address));
  return connection;
}

Status RedisConnection::finish_connect(const Deadline& deadline) {
  while (!wait_for(POLLOUT, deadline.left_ms()))
    if (deadline.is_over())
      return error(ErrorCode::unavailable, "connect",
                   fmt::format("no connection in {} ms", deadline.ms()));
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(context_->fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  if (problem == 0) return {};
  return error(ErrorCode::unavailable, "connect", std::generic_category().message(problem),
               "check that the server runs, and the address");
}

Status RedisConnection::introduce(const Deadline& deadline) {
  constexpr std::string_view kHelp = "check the user in the URL, and the password";
  if (!address_.user.empty())
    CHORD_TRY(expect_ok({"AUTH", address_.user, address_.password}, deadline, kHelp));
  else if (!address_.password.empty())
    CHORD_TRY(expect_ok({"AUTH", address_.password}, deadline, kHelp));
  if (address_.database == 0) return {};
  return expect_ok({"SELECT", std::to_string(address_.database)}, deadline,
                   "check the number of the database in the URL");
}

Status RedisConnection::expect_ok(const RedisWords& words, const Deadline& deadline,
                                  std::string_view help) {
  CHORD_TRY(const RedisReply reply, exchange(words, deadline));
  if (reply.is_text("OK")) return {};
  // A server that does not know AUTH repeats its words, in quotes and cut somewhere.
  const std::string text = describe(reply);
  return error(ErrorCode::unavailable, words.front(), text.substr(0, text.find_first_of("'`\"")),
               std::string(help));
}

Result<RedisReply> RedisConnection::exchange(const RedisWords& words, const Deadline& deadline) {
  const SigpipeGuard guard;
  CHORD_TRY(send(words, deadline));
  return receive(words.front(), deadline);
}

bool RedisConnection::is_stale() const {
  return context_->reader->pos != context_->reader->len || wait_for(POLLIN, 0);
}

Status RedisConnection::send(const RedisWords& words, const Deadline& deadline) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_, static_cast<int>(words.size()), texts.data(),
                             sizes.data()) != REDIS_OK)
    return failure(words.front());
  int is_done = 0;
  while (redisBufferWrite(context_, &is_done) == REDIS_OK) {
    if (is_done != 0) return {};
    if (deadline.is_over())
      return error(ErrorCode::unavailable, words.front(),
                   fmt::format("not all could be sent in {} ms", deadline.ms()));
    if (address_.is_tls)
      (void)wait_for(POLLIN, std::min(kTlsTurnMs, deadline.left_ms()));
    else
      (void)wait_for(POLLOUT, deadline.left_ms());
  }
  return failure(words.front());
}

Result<RedisReply> RedisConnection::receive(std::string_view command, const Deadline& deadline) {
  received_ = 0;
  for (;;) {
    CHORD_TRY(const bool has_come, read_some(command));
    void* got = nullptr;
    if (redisGetReplyFromReader(context_, &got) != REDIS_OK) return failure(command);
    if (got != nullptr) {
      const RedisReply reply = value_of(*static_cast<const redisReply*>(got));
      freeReplyObject(got);
      return reply;
    }
    // Also where bytes keep coming: one by one they would come for ever.
    if (deadline.is_over())
      return error(ErrorCode::unavailable, command,
                   received_ == 0 ? fmt::format("no answer in {} ms", deadline.ms())
                                  : fmt::format("only {} bytes of an answer in {} ms", received_,
                                                deadline.ms()));
    if (!has_come) (void)wait_for(POLLIN, deadline.left_ms());
  }
}

Result<bool> RedisConnection::read_some(std::string_view command) {
  const std::size_t before = context_->reader->len;
  if (redisBufferRead(context_) != REDIS_OK) return failure(command);
  const std::size_t got = context_->reader->len - before;
  received_ += got;
  if (received_ > kMaxReplyBytes)
    return error(ErrorCode::corrupt, command,
                 fmt::format("an answer of more than {} bytes", kMaxObjectBytes),
                 "whatever is there is none of our objects");
  return got > 0;
}

bool RedisConnection::wait_for(short events, int ms) const {
  pollfd socket{context_->fd, events, 0};
  return ::poll(&socket, 1, ms) > 0;
}

Error RedisConnection::failure(std::string_view command) {
  if (context_ == nullptr) return error(ErrorCode::unavailable, command, "out of memory");
  switch (context_->err) {
    case REDIS_ERR_EOF:
      has_ended_ = true;
      return error(ErrorCode::unavailable, command, "the server closed the connection");
    case REDIS_ERR_OOM:
      return error(ErrorCode::corrupt, command,
                   "an answer that is too long or nested too deeply, or too little memory");
    case REDIS_ERR_PROTOCOL:
      return error(ErrorCode::unavailable, command, printable(context_->errstr),
                   "check that a Redis server listens there");
    default:
      break;
  }
  has_ended_ = true;
  // A failed handshake has no errno to tell of.
  if (address_.is_tls)
    return error(ErrorCode::unavailable, command,
                 fmt::format("the TLS connection failed ({})", printable(context_->errstr)),
                 "check the server's certificate: its host name, and who signed it");
  return error(ErrorCode::unavailable, command, printable(context_->errstr));
}

Error RedisConnection::error(ErrorCode code, std::string_view command, std::string found,
                             std::string help) const {
  const std::string& password = address_.password;
  if (!password.empty() && found.find(password) != found.npos)
    found = "an answer that is not repeated here, since the password is in it";
  return Error{code, fmt::format("{} at {}", command, address_.name), std::move(found),
               std::move(help)};
}

}  // namespace chord::cache
