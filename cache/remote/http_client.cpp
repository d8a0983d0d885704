// See http_client.h.
#include "cache/remote/http_client.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "cache/remote/sigpipe_guard.h"

namespace chord::cache {
namespace {

struct Incoming {
  CURL* handle;
  HttpReply& reply;
  std::size_t room;
  bool is_wanted;
};

long status_of(CURL* handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

// libcurl hands over the body piece by piece. Returning less than `size` ends the call.
std::size_t take_body(char* bytes, std::size_t /*one*/, std::size_t size, void* context) {
  Incoming& incoming = *static_cast<Incoming*>(context);
  if (size > incoming.room) {
    incoming.reply.is_too_big = true;
    return 0;
  }
  incoming.room -= size;
  // What is not wanted is read all the same, so that the connection can stay.
  if (!incoming.is_wanted || status_of(incoming.handle) != 200) return size;
  try {
    incoming.reply.body.append(bytes, size);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size;
}

curl_socket_t open_socket(void* /*context*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool is_about_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_ISSUER_ERROR ||
         code == CURLE_SSL_INVALIDCERTSTATUS;
}

}  // namespace

const char* name(HttpRequest::Method method) {
  switch (method) {
    case HttpRequest::Method::get:
      return "GET";
    case HttpRequest::Method::head:
      return "HEAD";
    case HttpRequest::Method::put:
      return "PUT";
    case HttpRequest::Method::remove:
      return "DELETE";
  }
  return "?";
}

HttpClient::HttpClient(HttpClientSettings settings)
    : settings_(std::move(settings)),
      headers_(nullptr, curl_slist_free_all),
      put_headers_(nullptr, curl_slist_free_all) {
  const auto add = [](Headers& headers, const std::string& line) {
    // Appending to a list gives the same list; only of an empty one it gives a new one.
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    if (headers == nullptr) headers.reset(longer);
  };
  if (!settings_.token.empty()) {
    add(headers_, "Authorization: Bearer " + settings_.token);
    add(put_headers_, "Authorization: Bearer " + settings_.token);
  }
  add(put_headers_, "Content-Type: application/octet-stream");
  add(put_headers_, "Expect:");  // no "100-continue" first, which costs a round trip, or a second
}

void HttpClient::set_limits(CURL* handle) const {
  const long deadline = static_cast<long>(std::clamp<std::int64_t>(
      settings_.deadline_ms, 1, std::numeric_limits<std::int32_t>::max()));  // 0 would be "none"
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, deadline);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, deadline);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Without it the end of a call waits for a name look-up that still runs, deadline or not.
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl_easy_setopt(handle, CURLOPT_MAXFILESIZE_LARGE,
                   static_cast<curl_off_t>(settings_.max_body_bytes));
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(handle, CURLOPT_HTTP09_ALLOWED, 0L);
  // One exchange at a time on a connection: the streams of HTTP/2 would give nothing.
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
}

void HttpClient::set_identity(CURL* handle) const {
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "chord-jit");
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!settings_.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, settings_.ca_file.c_str());
    curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);
  }
  if (settings_.user.empty() && settings_.password.empty()) return;
  curl_easy_setopt(handle, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  curl_easy_setopt(handle, CURLOPT_USERNAME, settings_.user.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD, settings_.password.c_str());
}

void HttpClient::set_request(CURL* handle, const HttpRequest& request) const {
  using Method = HttpRequest::Method;
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers_.get());
  if (request.method == Method::head) curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  if (request.method == Method::remove) curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "DELETE");
  if (request.method != Method::put) return;
  // A body in memory under another verb: libcurl can then send it again by itself when a kept
  // connection turns out to be dead. Size first, for the body is not ended by a zero.
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, put_headers_.get());
}

HttpReply HttpClient::call(const HttpRequest& request) {
  HttpReply reply;
  const SigpipeGuard guard;  // CURLOPT_NOSIGNAL leaves that to us
  const CurlPool::Loan loan = pool_.borrow();
  CURL* handle = loan.handle();
  if (handle == nullptr) {
    reply.failure = "libcurl gave no handle";
    return reply;
  }
  std::array<char, CURL_ERROR_SIZE> detail{};
  const bool is_wanted = request.method == HttpRequest::Method::get;
  Incoming incoming{handle, reply, settings_.max_body_bytes, is_wanted};
  curl_easy_reset(handle);  // options only; the connection stays
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &incoming);
  set_limits(handle);
  set_identity(handle);
  set_request(handle, request);
  const CURLcode code = curl_easy_perform(handle);
  if (code == CURLE_FILESIZE_EXCEEDED) reply.is_too_big = true;
  if (status_of(handle) != 200 && std::exchange(reply.is_too_big, false))
    reply.status = status_of(handle);  // an error is one, however long its page
  else if (code == CURLE_OK)
    reply.status = status_of(handle);
  else
    explain(code, detail.data(), reply);
  // Nothing of this call stays in the pool.
  curl_easy_reset(handle);
  return reply;
}

void HttpClient::explain(CURLcode code, std::string_view detail, HttpReply& reply) const {
  reply.body.clear();
  if (reply.is_too_big) {
    reply.failure = fmt::format("the answer has more than {} bytes", settings_.max_body_bytes);
    return;
  }
  if (code == CURLE_OPERATION_TIMEDOUT)
    reply.failure = fmt::format("no whole answer within {} ms", settings_.deadline_ms);
  else if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY)
    reply.failure = "the answer is not HTTP";
  if (detail.empty() || has_secret(detail)) detail = curl_easy_strerror(code);
  reply.failure += reply.failure.empty() ? detail : fmt::format(": {}", detail);
  if (is_about_certificates(code))
    reply.failure_help = "name the file of the CA that signed it: ?ca=/path/of/ca.pem";
  if (code == CURLE_SSL_CACERT_BADFILE)
    reply.failure_help = fmt::format("is {} a readable PEM file?", settings_.ca_file);
}

// libcurl's own words may repeat what a server said, and a server may repeat what it was sent.
bool HttpClient::has_secret(std::string_view text) const {
  for (const std::string* secret : {&settings_.token, &settings_.password})
    if (!secret->empty() && text.find(*secret) != text.npos) return true;
  return false;
}

}  // namespace chord::cache
