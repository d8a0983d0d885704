// One HTTP exchange on libcurl: a request out, a status and a bounded body back, all of it within
// the deadline. Knows no cache. Calls come from several threads at once, and from a child after a
// fork.
//
// What libcurl would do by itself and does not do here:
//   - A redirect is not followed: the token would go to whoever the answer names.
//   - http_proxy and its kin in the environment are ignored (CURLOPT_NOPROXY "*"). They are set for
//     the jobs of a machine, not for its cache: objects and token would take a way that nobody
//     chose, and a proxy that is slow or down would look like a slow or dead store.
//   - No other protocol than http and https, no HTTP/0.9, no TLS below 1.2. Certificates are always
//     verified; a CA file replaces the system's own.
//   - No connection outlives an exec.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cache/remote/curl_pool.h"

namespace chord::cache {

struct HttpRequest {
  enum class Method { get, head, put, remove };
  Method method = Method::get;
  std::string url;
  std::string_view body{};  // of PUT
};
const char* name(HttpRequest::Method method);

struct HttpReply {
  long status = 0;             // 0: there was no whole reply
  std::string body{};          // of a GET that was answered 200
  bool is_too_big = false;     // more than the client takes; not read to its end
  std::string failure{};       // why there was no whole reply; has no secret
  std::string failure_help{};  // may be empty
};

struct HttpClientSettings {
  std::int64_t deadline_ms = 1000;  // of one call, connecting included; at least 1
  std::size_t max_body_bytes = 0;
  std::string ca_file{};  // empty: the system's
  std::string user{};     // of basic authentication, together with the password
  std::string password{};
  std::string token{};  // of bearer authentication; not beside a user
};

class HttpClient {
 public:
  explicit HttpClient(HttpClientSettings settings);

  HttpReply call(const HttpRequest& request);
  const HttpClientSettings& settings() const { return settings_; }

 private:
  using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

  void set_limits(CURL* handle) const;
  void set_identity(CURL* handle) const;
  void set_request(CURL* handle, const HttpRequest& request) const;
  void explain(CURLcode code, std::string_view detail, HttpReply& reply) const;
  bool has_secret(std::string_view text) const;

  const HttpClientSettings settings_;
  Headers headers_;
  Headers put_headers_;
  CurlPool pool_;
};

}  // namespace chord::cache
