// See http_backend.h.
#include "cache/remote/http_backend.h"

#include <fmt/format.h>

#include <utility>

#include "cache/key.h"
#include "cache/signatures.h"

namespace chord::cache {
namespace {

using Method = HttpRequest::Method;

bool is_absent(long status) { return status == 404 || status == 410; }
bool is_redirect(long status) { return status >= 300 && status < 400 && status != 304; }

// The statuses that a store is known to answer with, in words.
const char* meaning_of(long status) {
  switch (status) {
    case 400:
      return "bad request";
    case 401:
      return "not authorized";
    case 403:
      return "forbidden";
    case 405:
      return "the method is not allowed";
    case 407:
      return "a proxy wants authorization";
    case 409:
      return "conflict";
    case 411:
      return "the length is required";
    case 413:
      return "the object is too large for the server";
    case 429:
      return "too many requests";
    case 500:
      return "internal error of the server";
    case 501:
      return "the server does not do that";
    case 502:
      return "bad gateway";
    case 503:
      return "the service is unavailable";
    case 504:
      return "gateway timeout";
    case 507:
      return "the store is full";
    default:
      return is_redirect(status) ? "a redirect, which is not followed" : "not expected here";
  }
}

TierAnswer no_value(Lookup lookup, const Error& why) {
  const std::string help = why.help.empty() ? "" : fmt::format(" ({})", why.help);
  return {lookup, {}, why.found + help};
}

constexpr const char* kNoName = "the key's name is not 32 hex digits";

}  // namespace

HttpBackend::HttpBackend(std::string base, Layout layout, HttpClientSettings settings)
    : base_(std::move(base)), layout_(layout), client_(std::move(settings)) {}

bool HttpBackend::can_name(const CacheKey& key) const {
  return layout_ == Layout::bazel || is_content_name(key.name);
}

std::string HttpBackend::url_of(const CacheKey& key) const {
  if (layout_ == Layout::bazel) return fmt::format("{}/{}", base_, sha256_hex(key.name));
  return fmt::format("{}/v{}/{}/{}", base_, kSchemaVersion, key.name.substr(0, 2), key.name);
}

HttpReply HttpBackend::call(Method method, const CacheKey& key, std::string_view body) {
  return client_.call({.method = method, .url = url_of(key), .body = body});
}

std::string HttpBackend::help_for(long status) const {
  if (is_redirect(status)) return "name the final address in the URL";
  if (status != 401 && status != 403) return {};
  const HttpClientSettings& settings = client_.settings();
  if (!settings.token.empty())
    return "the server does not accept the token that was sent, or not for this: check "
           "CHORD_REMOTE_TOKEN or CHORD_REMOTE_TOKEN_FILE";
  if (!settings.user.empty() || !settings.password.empty())
    return "the server does not accept the user and password that were sent, or not for this";
  return "no token was sent: set CHORD_REMOTE_TOKEN or CHORD_REMOTE_TOKEN_FILE";
}

Error HttpBackend::fault_of(Method method, const HttpReply& reply) const {
  Error error{ErrorCode::io_error, fmt::format("{} at {}", cache::name(method), base_), {}, {}};
  if (!reply.failure.empty()) {
    error.found = reply.failure;
    error.help = reply.failure_help;
  } else {
    error.found = fmt::format("status {}: {}", reply.status, meaning_of(reply.status));
    error.help = help_for(reply.status);
  }
  return error;
}

TierAnswer HttpBackend::get(const CacheKey& key) {
  if (!can_name(key)) return {Lookup::absent, {}, kNoName};
  HttpReply reply = call(Method::get, key);
  if (reply.status == 200) return {Lookup::value, std::move(reply.body), {}};
  if (is_absent(reply.status)) return {Lookup::absent, {}, "no such object"};
  return no_value(reply.is_too_big ? Lookup::refused : Lookup::failed,
                  fault_of(Method::get, reply));
}

TierAnswer HttpBackend::head(const CacheKey& key) {
  if (!can_name(key)) return {Lookup::absent, {}, kNoName};
  const HttpReply reply = call(Method::head, key);
  if (reply.status == 200) return {Lookup::value, {}, {}};
  if (is_absent(reply.status)) return {Lookup::absent, {}, "no such object"};
  return no_value(Lookup::failed, fault_of(Method::head, reply));
}

Status HttpBackend::put(const CacheKey& key, std::string_view bytes) {
  if (!can_name(key))
    return Error{ErrorCode::invalid_argument, fmt::format("PUT at {}", base_), kNoName, ""};
  if (bytes.size() > kMaxObjectBytes)
    return Error{ErrorCode::invalid_argument, fmt::format("PUT at {}", base_),
                 fmt::format("an object of {} bytes; at most {} are sent or taken", bytes.size(),
                             kMaxObjectBytes),
                 ""};
  const HttpReply reply = call(Method::put, key, bytes);
  if (reply.status == 200 || reply.status == 201 || reply.status == 204) return {};
  return fault_of(Method::put, reply);
}

Status HttpBackend::remove(const CacheKey& key) {
  if (!can_name(key))
    return Error{ErrorCode::invalid_argument, fmt::format("DELETE at {}", base_), kNoName, ""};
  const HttpReply reply = call(Method::remove, key);
  const bool is_gone = reply.status == 200 || reply.status == 202 || reply.status == 204;
  if (is_gone || is_absent(reply.status)) return {};
  return fault_of(Method::remove, reply);
}

}  // namespace chord::cache
