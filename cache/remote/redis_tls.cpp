// See redis_tls.h.
#include "cache/remote/redis_tls.h"

#include <fmt/format.h>

#ifdef CHORD_HAS_REDIS_TLS
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>

#include <mutex>
#endif

namespace chord::cache {
namespace {

Error tls_error(const RedisAddress& address, std::string found, std::string help) {
  return Error{ErrorCode::unavailable, fmt::format("TLS to {}", address.name), std::move(found),
               std::move(help)};
}

}  // namespace

#ifdef CHORD_HAS_REDIS_TLS

namespace {

redisSSLContext* make_context(const RedisAddress& address, redisSSLContextError& problem) {
  const char* ca_file = address.ca_file.empty() ? nullptr : address.ca_file.c_str();
#if HIREDIS_MAJOR > 1 || (HIREDIS_MAJOR == 1 && HIREDIS_MINOR >= 5)
  redisSSLOptions options{};
  options.cacert_filename = ca_file;
  options.server_name = address.host.c_str();
  options.verify_mode = REDIS_SSL_VERIFY_PEER;
  options.verify_name = address.host.c_str();
  return redisCreateSSLContextWithOptions(&options, &problem);
#else
  return redisCreateSSLContext(ca_file, nullptr, nullptr, nullptr, address.host.c_str(), &problem);
#endif
}

}  // namespace

bool has_redis_tls() { return true; }

Status start_redis_tls(redisContext& context, const RedisAddress& address) {
  static std::once_flag once;
  std::call_once(once, [] { (void)redisInitOpenSSL(); });
  redisSSLContextError problem = REDIS_SSL_CTX_NONE;
  redisSSLContext* settings = make_context(address, problem);
  if (settings == nullptr)
    return tls_error(address, redisSSLContextGetError(problem),
                     "check the file that 'ca' names in the URL, and the system's certificates");
  const int answer = redisInitiateSSLWithContext(&context, settings);
  redisFreeSSLContext(settings);  // the connection keeps what it needs
  if (answer != REDIS_OK)
    return tls_error(
        address, context.errstr,
        "check that the server speaks TLS on this port, and who signed its certificate");
  return {};
}

#else

bool has_redis_tls() { return false; }

Status start_redis_tls(redisContext&, const RedisAddress& address) {
  return tls_error(address, "this build has none", "");
}

#endif

}  // namespace chord::cache
