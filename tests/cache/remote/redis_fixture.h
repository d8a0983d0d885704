// What tests of the Redis back-end need: a server, a proxy before it, clients, and a stop-watch.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cache/key.h"
#include "cache/remote/redis_backend.h"
#include "cache/remote/redis_client.h"
#include "cache/remote/remote_url.h"
#include "tests/support/redis_server.h"
#include "tests/support/fault_proxy.h"

namespace chord::cache {

// Above a deadline: a machine that is busy with other tests needs its time.
inline constexpr int kSlackMs = 1500;

class Stopwatch {
 public:
  std::int64_t ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

inline CacheKey key_of(const std::string& source) {
  return KeyBuilder().field("arch", "sm_90a").field("source", source).finish();
}

inline RemoteSettings settings_of(const std::string& url, std::int64_t deadline_ms = 2000) {
  RemoteSettings settings;
  auto parsed = parse_remote_url(url);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  if (parsed) settings.url = *parsed;
  settings.deadline_ms = deadline_ms;
  return settings;
}

inline std::shared_ptr<RemoteBackend> backend_of(const RemoteSettings& settings) {
  auto backend = make_backend(settings);
  EXPECT_TRUE(backend.ok()) << backend.error().message();
  return backend ? *backend : nullptr;
}

inline std::shared_ptr<RemoteBackend> backend_at(const std::string& url,
                                                 std::int64_t deadline_ms = 2000) {
  return backend_of(settings_of(url, deadline_ms));
}

inline std::string url_of_port(int port) { return "redis://127.0.0.1:" + std::to_string(port); }

class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::RedisServer::available()) GTEST_SKIP() << testing::RedisServer::kMissing;
    start({});
  }
  void start(testing::RedisServerOptions options) {
    server = std::make_unique<testing::RedisServer>(std::move(options));
    ASSERT_TRUE(server->is_running());
  }
  std::shared_ptr<RedisClient> client(int port) const {
    RedisAddress address;
    address.name = url_of_port(port);
    address.host = "127.0.0.1";
    address.port = port;
    return std::make_shared<RedisClient>(std::move(address));
  }
  std::shared_ptr<RedisClient> client() const { return client(server->port()); }
  std::shared_ptr<RemoteBackend> backend(const std::string& rest = "") const {
    return backend_at(server->url() + rest);
  }

  std::unique_ptr<testing::RedisServer> server;
  const CacheKey key = key_of("kernel");
};

}  // namespace chord::cache
