// The http and https rows of the scheme table: what a URL and the secrets beside it ask for,
// checked before anything is sent. No message repeats a secret.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cache/remote/http_backend.h"
#include "cache/remote/remote_url.h"

namespace chord::cache {
namespace {

Error refuse(const RemoteUrl& url, std::string found, std::string help = {}) {
  return Error{ErrorCode::invalid_argument,
               fmt::format("remote cache at {}://{}", url.scheme, url.host), std::move(found),
               std::move(help)};
}

bool is_plain(std::string_view text, std::string_view forbidden) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return c > ' ' && c <= '~' && forbidden.find(c) == forbidden.npos;
  });
}

// A line break in a header would begin another header.
bool fits_in_a_header(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

struct CurlText {
  char* text = nullptr;
  ~CurlText() { curl_free(text); }
};

// Put together, and looked at, by libcurl: it is what will take it apart.
Result<std::string> base_of(const RemoteUrl& url) {
  if (!is_plain(url.path, "?#\\"))
    return refuse(url, "its path has characters that no path of a URL has",
                  "write them in percent form");
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts(curl_url(), curl_url_cleanup);
  const bool is_bare_ipv6 = url.host.find(':') != url.host.npos && url.host.front() != '[';
  const std::string host = is_bare_ipv6 ? fmt::format("[{}]", url.host) : url.host;
  const std::string port = std::to_string(url.port);
  CURLUcode code = curl_url_set(parts.get(), CURLUPART_SCHEME, url.scheme.c_str(), 0);
  if (code == CURLUE_OK) code = curl_url_set(parts.get(), CURLUPART_HOST, host.c_str(), 0);
  if (code == CURLUE_OK && url.port != 0)
    code = curl_url_set(parts.get(), CURLUPART_PORT, port.c_str(), 0);
  if (code == CURLUE_OK)
    code = curl_url_set(parts.get(), CURLUPART_PATH, url.path.empty() ? "/" : url.path.c_str(), 0);
  CurlText whole;
  if (code == CURLUE_OK) code = curl_url_get(parts.get(), CURLUPART_URL, &whole.text, 0);
  if (code != CURLUE_OK) return refuse(url, "host, port or path can not be those of a web server");
  std::string base = whole.text;
  while (base.back() == '/') base.pop_back();
  return base;
}

Result<HttpBackend::Layout> read_query(const RemoteUrl& url, std::string& ca_file) {
  auto layout = HttpBackend::Layout::sharded;
  for (const auto& [label, value] : url.query) {
    if (label == "ca") {
      if (url.scheme != "https") return refuse(url, "'ca' without https", "");
      if (value.empty()) return refuse(url, "'ca' is empty", "ca=/path/of/ca.pem");
      ca_file = value;
    } else if (label == "layout") {
      if (value != "bazel")
        return refuse(url, fmt::format("layout '{}'", value), "layout=bazel, or none");
      layout = HttpBackend::Layout::bazel;
    } else {
      return refuse(url, fmt::format("'{}' is not known here", label), "known: ca, layout");
    }
  }
  return layout;
}

Status check_identity(const RemoteUrl& url, const HttpClientSettings& client) {
  if (!client.token.empty() && !(client.user.empty() && client.password.empty()))
    return refuse(url, "a token beside a user or password", "one of them says who is asking");
  if (!is_plain(client.token, ""))
    return refuse(url, "the token has a blank, a line break or another character that none has",
                  "is it the content of another file?");
  if (!fits_in_a_header(client.user) || !fits_in_a_header(client.password))
    return refuse(url, "user or password has a line break or another control character",
                  "is it the content of another file?");
  if (client.user.find(':') != client.user.npos)
    return refuse(url, "the user has a ':', which basic authentication can not express");
  return {};
}

}  // namespace

Result<std::shared_ptr<RemoteBackend>> make_http_backend(const RemoteSettings& settings) {
  const RemoteUrl& url = settings.url;
  if (url.scheme != "http" && url.scheme != "https")
    return refuse(url, "not a scheme of a web server", "http or https");
  if (url.host.empty()) return refuse(url, "it names no host", "http://host/path");
  if (settings.deadline_ms < 1)
    return refuse(url, fmt::format("a deadline of {} ms", settings.deadline_ms), "at least 1");
  HttpClientSettings client;
  client.deadline_ms = settings.deadline_ms;
  client.max_body_bytes = kMaxObjectBytes;
  client.user = url.user;
  client.password = settings.password.empty() ? url.password : settings.password;
  client.token = settings.token;
  CHORD_TRY(check_identity(url, client));
  CHORD_TRY(const HttpBackend::Layout layout, read_query(url, client.ca_file));
  CHORD_TRY(const std::string base, base_of(url));
  return std::shared_ptr<RemoteBackend>(
      std::make_shared<HttpBackend>(base, layout, std::move(client)));
}

}  // namespace chord::cache
