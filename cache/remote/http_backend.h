// A web server as a store of objects: GET, HEAD, PUT and DELETE by name. The status decides what an
// answer is; a page that comes with an error is never taken for an object.
//
//   http://host[:80]/path    object at path/v<schema>/<ab>/<32 hex digits of the key's name>
//   https://...              verified by the system's CAs, or by those of ?ca=/path/of/ca.pem alone
//   ?layout=bazel            object at path/<64 hex digits, SHA-256 of the key's text>; with the
//                            path .../ac a bazel-remote keeps it without looking into it
//
// Who is asking: a bearer token, or user and password of basic authentication. Both cross plain
// http readably; https is for networks that others share. http_client.h says what libcurl does not
// do here: no redirects, no proxy of the environment.
#pragma once

#include <string>

#include "cache/remote/backend.h"
#include "cache/remote/http_client.h"

namespace chord::cache {

class HttpBackend final : public RemoteBackend {
 public:
  enum class Layout { sharded, bazel };

  // `base` is the URL without secrets, query and final slash.
  HttpBackend(std::string base, Layout layout, HttpClientSettings settings);

  std::string name() const override { return base_; }
  TierAnswer get(const CacheKey& key) override;
  TierAnswer head(const CacheKey& key) override;
  Status put(const CacheKey& key, std::string_view bytes) override;
  Status remove(const CacheKey& key) override;

 private:
  bool can_name(const CacheKey& key) const;
  std::string url_of(const CacheKey& key) const;
  HttpReply call(HttpRequest::Method method, const CacheKey& key, std::string_view body = {});
  // What stands in the way where the reply is no success.
  Error fault_of(HttpRequest::Method method, const HttpReply& reply) const;
  std::string help_for(long status) const;

  const std::string base_;
  const Layout layout_;
  HttpClient client_;
};

}  // namespace chord::cache
