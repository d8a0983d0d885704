// Where a remote store is and how to speak to it: one URL, the secrets beside it, and the table of
// schemes.
//
//   redis://[user@]host[:6379][/database][?prefix=chord:][&ttl=SECONDS]
//   redis+unix://[user@]/path/of/socket[?database=N][&prefix=chord:][&ttl=SECONDS]
//   rediss://...[?ca=FILE]  redis over TLS, where the build has hiredis with its TLS part
//   http://host[:80]/path   objects are path/<schema>/<ab>/<name>; GET, HEAD, PUT, DELETE
//   https://...             ?layout=bazel: path/<SHA-256 of the name>, as a Bazel cache wants
//
// A password or token in a URL is legal where the URL comes from the environment or a file; tools
// refuse one on their command line, and nothing here ever prints it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/remote/backend.h"
#include "chord/status.h"

namespace chord::cache {

struct RemoteUrl {
  std::string scheme;
  std::string user;
  std::string password;  // of Redis, or of HTTP basic authentication
  std::string host;      // without the brackets of an IPv6 address; empty for a socket
  int port = 0;          // 0: the scheme's own
  std::string path;      // begins with '/'; empty if there is none; of HTTP still percent-encoded
  std::map<std::string, std::string> query;

  // The URL without its secrets, for people. Leaves out the user as well: a token may stand there.
  std::string redacted() const;
};

// Takes any scheme; whether there is a back-end for it, and for the parameters, says make_backend.
Result<RemoteUrl> parse_remote_url(std::string_view text);

struct RemoteSettings {
  RemoteUrl url;
  std::string password;  // beside the URL: CHORD_REMOTE_PASSWORD, or the file named for it
  std::string token;     // bearer token of HTTP
  std::int64_t deadline_ms = 1000;  // of one call, connecting included
};

// Looks the scheme up in the table. An unknown one, or one that this build left out, is an error
// that names those that are there. Connects to nothing.
Result<std::shared_ptr<RemoteBackend>> make_backend(const RemoteSettings& settings);

// "redis, redis+unix, http, https" of this build.
std::vector<std::string> known_schemes();

// One function per scheme family; the rows of the table.
Result<std::shared_ptr<RemoteBackend>> make_redis_backend(const RemoteSettings& settings);
Result<std::shared_ptr<RemoteBackend>> make_http_backend(const RemoteSettings& settings);

}  // namespace chord::cache
