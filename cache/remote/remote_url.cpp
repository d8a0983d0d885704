// See remote_url.h. No message repeats a part of a URL in which a password may stand, a misplaced
// one included: with a '/' or '@' that was not percent-encoded, any part may be one.
#include "cache/remote/remote_url.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "cache/remote/redis_tls.h"

namespace chord::cache {
namespace {

using Maker = Result<std::shared_ptr<RemoteBackend>> (*)(const RemoteSettings&);

struct Scheme {
  std::string_view name;
  Maker make;
  std::vector<std::string_view> parameters;
  std::string_view missing = {};  // why this build does not have it
  std::string_view help = {};
};

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> table{
      {"redis", make_redis_backend, {"prefix", "ttl"}},
      {"redis+unix", make_redis_backend, {"database", "prefix", "ttl"}},
      {"rediss",
       make_redis_backend,
       {"ca", "prefix", "ttl"},
       has_redis_tls() ? "" : "this build can not speak TLS to Redis: its hiredis has no TLS part",
       "build with hiredis 1.0 or newer and its hiredis_ssl; or let a TLS proxy on this machine "
       "speak to the server, and name the proxy with redis:// or redis+unix://"},
      {"http", make_http_backend, {"layout"}},
      {"https", make_http_backend, {"ca", "layout"}},
  };
  return table;
}

Error bad_url(std::string found, std::string help = {}) {
  return Error{ErrorCode::invalid_argument, "the URL of a remote cache", std::move(found),
               std::move(help)};
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_printable(char c) { return c > ' ' && c <= '~'; }

bool is_scheme(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '+'; });
}

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

// What control characters are good for: a password may have them, a name never.
enum class Controls { refused, taken };

Result<std::string> decode(std::string_view text, std::string_view what,
                           Controls controls = Controls::refused) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
      if (!high || !low)
        return bad_url(fmt::format("a '%' without two hex digits in its {}", what),
                       "'%' itself is written %25");
      c = static_cast<char>(*high * 16 + *low);
      i += 2;
    }
    const bool is_control = (c >= 0 && c < ' ') || c == 0x7f;
    if (c == 0 || (is_control && controls == Controls::refused))
      return bad_url(fmt::format("a control character in its {}", what));
    decoded += c;
  }
  return decoded;
}

// Cuts `text` at the first of `marks`, which stays with the rest.
std::string_view cut(std::string_view& text, std::string_view marks) {
  const std::string_view head = text.substr(0, text.find_first_of(marks));
  text.remove_prefix(head.size());
  return head;
}

Status parse_user(std::string_view text, RemoteUrl& url) {
  const std::string_view user = cut(text, ":");
  if (!text.empty()) text.remove_prefix(1);
  CHORD_TRY(url.user, decode(user, "user"));
  CHORD_TRY(url.password, decode(text, "password", Controls::taken));
  return {};
}

Status parse_port(std::string_view text, RemoteUrl& url) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), url.port);
  if (problem != std::errc{} || stop != text.data() + text.size() || url.port < 1 ||
      url.port > 65535)
    return bad_url("its port is not a number from 1 to 65535",
                   "a '/', '?', '#', '@' or ':' in a password is written %2F, %3F, %23, %40, %3A");
  return {};
}

Status parse_host(std::string_view text, RemoteUrl& url) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return bad_url("its '[' has no ']'", "[::1]:6379");
    url.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (url.host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos ||
        url.host.find(':') == std::string::npos)
      return bad_url("what stands between '[' and ']' is no IPv6 address", "[::1]:6379");
  } else {
    url.host = cut(text, ":");
    if (!std::all_of(url.host.begin(), url.host.end(), [](char c) {
          return is_letter(static_cast<char>(c | 0x20)) || is_digit(c) || c == '.' || c == '-' ||
                 c == '_';
        }))
      return bad_url("its host has a character that no host has",
                     "an IPv6 address stands in brackets: [::1]:6379");
  }
  if (text.empty()) return {};
  if (!text.starts_with(':')) return bad_url("something follows the ']' of its host");
  return parse_port(text.substr(1), url);
}

Status parse_authority(std::string_view text, RemoteUrl& url) {
  const std::size_t at = text.rfind('@');
  if (at != text.npos) {
    CHORD_TRY(parse_user(text.substr(0, at), url));
    text.remove_prefix(at + 1);
  }
  CHORD_TRY(parse_host(text, url));
  const bool is_socket = url.scheme.ends_with("+unix");
  if (is_socket && (!url.host.empty() || url.port != 0))
    return bad_url("a host where the path of a socket should begin",
                   "three slashes: redis+unix:///run/redis.sock");
  if (!is_socket && url.host.empty()) return bad_url("it names no host", "redis://host:6379");
  return {};
}

Status parse_query(std::string_view text, RemoteUrl& url) {
  while (!text.empty()) {
    text.remove_prefix(1);  // '?' or '&'
    std::string_view pair = cut(text, "&");
    const std::string_view label = cut(pair, "=");
    if (label.empty() || pair.empty()) return bad_url("a parameter that is not name=value");
    CHORD_TRY(std::string name, decode(label, "parameters"));
    CHORD_TRY(std::string value, decode(pair.substr(1), "parameters"));
    if (!url.query.emplace(std::move(name), std::move(value)).second)
      return bad_url("a parameter that is given twice");
  }
  return {};
}

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme& scheme : schemes())
    if (scheme.name == name) return &scheme;
  return nullptr;
}

bool is_known_parameter(std::string_view name) {
  return std::any_of(schemes().begin(), schemes().end(), [&](const Scheme& scheme) {
    const auto& known = scheme.parameters;
    return std::find(known.begin(), known.end(), name) != known.end();
  });
}

Status check_parameters(const Scheme& scheme, const RemoteUrl& url) {
  const auto& known = scheme.parameters;
  for (const auto& [name, value] : url.query)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Error{ErrorCode::invalid_argument, fmt::format("a cache at {}", url.redacted()),
                   fmt::format("{}:// knows no parameter '{}'", scheme.name, name),
                   fmt::format("it knows {}", fmt::join(known, ", "))};
  return {};
}

}  // namespace

std::string RemoteUrl::redacted() const {
  // Not even the user: a token may stand there.
  std::string text = scheme + "://";
  text += host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != 0) text += fmt::format(":{}", port);
  text += path;
  char mark = '?';
  for (const auto& [name, value] : query) {
    text += fmt::format("{}{}={}", mark, name, is_known_parameter(name) ? value : "...");
    mark = '&';
  }
  return text;
}

Result<RemoteUrl> parse_remote_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  RemoteUrl url;
  url.scheme = text.substr(0, colon == text.npos ? 0 : colon);
  std::transform(url.scheme.begin(), url.scheme.end(), url.scheme.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  const std::string schemes = fmt::format("{}", fmt::join(known_schemes(), ", "));
  if (!is_scheme(url.scheme))
    return bad_url("it does not begin with a scheme and '://'", "schemes here: " + schemes);
  if (!std::all_of(text.begin(), text.end(), is_printable))
    return bad_url("a blank or a character outside ASCII", "percent-encode it");
  text.remove_prefix(colon + 3);
  CHORD_TRY(parse_authority(cut(text, "/?#"), url));
  if (text.find_first_of("@#") != text.npos)
    return bad_url("a '@' or '#' behind its host",
                   "there they are written %40 and %23; a '/' or '?' in a password %2F and %3F");
  url.path = cut(text, "?");
  // The path of a web server keeps its percent signs: it goes on to the server as it is.
  if (url.scheme.starts_with("redis")) {
    CHORD_TRY(url.path, decode(url.path, "path"));
  }
  if (url.scheme.ends_with("+unix") && url.path.empty())
    return bad_url("it has no path of a socket", "redis+unix:///run/redis.sock");
  CHORD_TRY(parse_query(text, url));
  return url;
}

std::vector<std::string> known_schemes() {
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes())
    if (scheme.missing.empty()) names.emplace_back(scheme.name);
  return names;
}

Result<std::shared_ptr<RemoteBackend>> make_backend(const RemoteSettings& settings) {
  const Scheme* scheme = find_scheme(settings.url.scheme);
  const std::string asked = fmt::format("a cache at {}", settings.url.redacted());
  if (scheme == nullptr)
    return Error{ErrorCode::unsupported, asked,
                 fmt::format("no back-end of the scheme '{}'", settings.url.scheme),
                 fmt::format("schemes here: {}", fmt::join(known_schemes(), ", "))};
  if (!scheme->missing.empty())
    return Error{ErrorCode::unsupported, asked, std::string(scheme->missing),
                 std::string(scheme->help)};
  CHORD_TRY(check_parameters(*scheme, settings.url));
  return scheme->make(settings);
}

}  // namespace chord::cache
