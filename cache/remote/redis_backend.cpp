// See redis_backend.h; and the row of Redis in the table of schemes.
#include "cache/remote/redis_backend.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "cache/key.h"
#include "cache/remote/redis_lease.h"
#include "cache/remote/remote_url.h"

namespace chord::cache {
namespace {

constexpr std::size_t kLongestSocketPath = 107;  // sockaddr_un

Error url_error(const RemoteUrl& url, std::string found, std::string help = {}) {
  return Error{ErrorCode::invalid_argument, fmt::format("a cache at {}", url.redacted()),
               std::move(found), std::move(help)};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> parameter(const RemoteUrl& url, const std::string& label) {
  const auto found = url.query.find(label);
  if (found == url.query.end()) return std::nullopt;
  return found->second;
}

// "/3" of an address, "database=3" of a socket.
Result<int> database_of(const RemoteUrl& url, bool is_socket) {
  std::string text = is_socket ? parameter(url, "database").value_or("0") : url.path;
  if (!is_socket) text.erase(0, 1);
  if (text.empty()) return 0;
  const std::optional<std::int64_t> number = number_of(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max())
    return url_error(url, "its database is not a number",
                     is_socket ? "?database=3" : "redis://host:6379/3");
  return static_cast<int>(*number);
}

Result<RedisPlace> place_of(const RemoteSettings& settings) {
  RedisPlace place;
  place.deadline_ms = settings.deadline_ms;
  place.prefix = parameter(settings.url, "prefix").value_or(place.prefix);
  if (const std::optional<std::string> ttl = parameter(settings.url, "ttl")) {
    const std::optional<std::int64_t> seconds = number_of(*ttl);
    if (!seconds || *seconds <= 0 || *seconds > std::numeric_limits<int>::max())
      return url_error(settings.url, "its ttl is not a number of seconds above zero",
                       "?ttl=604800");
    place.ttl_s = *seconds;
  }
  return place;
}

Result<RedisAddress> address_of(const RemoteSettings& settings) {
  const RemoteUrl& url = settings.url;
  RedisAddress address;
  const bool is_socket = url.scheme == "redis+unix";
  address.name = url.redacted();
  address.is_tls = url.scheme == "rediss";
  address.host = url.host;
  if (url.port != 0) address.port = url.port;
  if (is_socket) address.socket = url.path;
  if (address.socket.size() > kLongestSocketPath)
    return url_error(
        url, fmt::format("the path of the socket has more than {} bytes", kLongestSocketPath));
  address.user = url.user;
  address.password = settings.password.empty() ? url.password : settings.password;
  address.ca_file = parameter(url, "ca").value_or("");
  CHORD_TRY(address.database, database_of(url, is_socket));
  return address;
}

}  // namespace

RedisBackend::RedisBackend(std::shared_ptr<RedisClient> client, RedisPlace place)
    : client_(std::move(client)),
      place_(std::move(place)),
      leases_(std::make_shared<RedisLeases>(
          client_,
          RedisLeaseSettings{.prefix = place_.prefix, .deadline_ms = place_.deadline_ms})) {}

std::string RedisBackend::object_name(const CacheKey& key) const {
  return fmt::format("{}v{}:{}", place_.prefix, kSchemaVersion, key.name);
}

// All four commands may be done twice.
Result<RedisReply> RedisBackend::run(const RedisWords& words) {
  return client_->run(words, place_.deadline_ms, Repeat::once);
}

Error RedisBackend::unexpected(std::string_view command, const RedisReply& reply) const {
  return Error{ErrorCode::unavailable, fmt::format("{} at {}", command, name()),
               fmt::format("the server answered with {}", describe(reply)), ""};
}

TierAnswer RedisBackend::get(const CacheKey& key) {
  Result<RedisReply> reply = run({"GET", object_name(key)});
  if (!reply) {
    const bool is_no_object = reply.error().code == ErrorCode::corrupt;
    return {is_no_object ? Lookup::refused : Lookup::failed, {}, reply.error().message()};
  }
  if (reply->kind == RedisReply::Kind::nil) return {Lookup::absent, {}, "not there"};
  if (reply->kind == RedisReply::Kind::text) return {Lookup::value, std::move(reply->text), {}};
  const bool is_no_object = reply->error_word() == "WRONGTYPE";
  return {is_no_object ? Lookup::refused : Lookup::failed, {}, unexpected("GET", *reply).message()};
}

TierAnswer RedisBackend::head(const CacheKey& key) {
  const Result<RedisReply> reply = run({"EXISTS", object_name(key)});
  if (!reply) return {Lookup::failed, {}, reply.error().message()};
  if (reply->kind != RedisReply::Kind::integer)
    return {Lookup::failed, {}, unexpected("EXISTS", *reply).message()};
  if (reply->integer == 0) return {Lookup::absent, {}, "not there"};
  return {Lookup::value, {}, {}};
}

Status RedisBackend::put(const CacheKey& key, std::string_view bytes) {
  if (bytes.size() > kMaxObjectBytes)
    return Error{ErrorCode::invalid_argument, fmt::format("SET at {}", name()),
                 fmt::format("an object of {} bytes", bytes.size()),
                 fmt::format("at most {} bytes", kMaxObjectBytes)};
  const std::string object = object_name(key);
  const std::string ttl = std::to_string(place_.ttl_s);
  RedisWords words{"SET", object, bytes};
  if (place_.ttl_s > 0) words.insert(words.end(), {"EX", ttl});
  CHORD_TRY(const RedisReply reply, run(words));
  if (reply.is_text("OK")) return {};
  return unexpected("SET", reply);
}

Status RedisBackend::remove(const CacheKey& key) {
  CHORD_TRY(const RedisReply reply, run({"DEL", object_name(key)}));
  if (reply.kind == RedisReply::Kind::integer) return {};
  return unexpected("DEL", reply);
}

Result<RedisStore> open_redis(const RemoteSettings& settings) {
  const std::string& scheme = settings.url.scheme;
  if (scheme != "redis" && scheme != "rediss" && scheme != "redis+unix")
    return Error{ErrorCode::unsupported, fmt::format("Redis at {}", settings.url.redacted()),
                 "it is a store of another kind, and has no streams",
                 "name a redis:// URL with CHORD_REMOTE"};
  CHORD_TRY(RedisAddress address, address_of(settings));
  CHORD_TRY(RedisPlace place, place_of(settings));
  return RedisStore{std::make_shared<RedisClient>(std::move(address)), std::move(place)};
}

Result<std::shared_ptr<RemoteBackend>> make_redis_backend(const RemoteSettings& settings) {
  CHORD_TRY(RedisStore store, open_redis(settings));
  return std::shared_ptr<RemoteBackend>(
      std::make_shared<RedisBackend>(std::move(store.client), std::move(store.place)));
}

}  // namespace chord::cache
