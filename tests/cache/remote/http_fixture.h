// What the tests of the HTTP back-end need: a server, a back-end on it, objects, and the time that
// a call takes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cache/key.h"
#include "cache/remote/remote_url.h"
#include "tests/support/nginx_server.h"

namespace chord::cache {

inline CacheKey object_key(const std::string& source) {
  return KeyBuilder().field("arch", "sm_90a").field("source", source).finish();
}

// Bytes of every value, zeros and line ends among them.
inline std::string object_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  unsigned state = 12345;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

class HttpTest : public ::testing::Test {
 protected:
  // Deadlines are generous where a test is not about them: the machine may be busy.
  static constexpr std::int64_t kAmple = 10'000;

  void SetUp() override {
    if (const std::string why = testing::NginxServer::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  void serve(testing::NginxOptions options = {}) {
    server = std::make_unique<testing::NginxServer>(std::move(options));
    ASSERT_TRUE(server->is_up()) << server->error_log();
  }

  static RemoteSettings settings_of(int port, std::string path = "/cubins") {
    RemoteSettings settings;
    settings.url.scheme = "http";
    settings.url.host = "127.0.0.1";
    settings.url.port = port;
    settings.url.path = std::move(path);
    settings.deadline_ms = kAmple;
    return settings;
  }
  RemoteSettings settings(std::string path = "/cubins") const {
    return settings_of(server->port(), std::move(path));
  }
  static std::shared_ptr<RemoteBackend> open(const RemoteSettings& settings) {
    auto backend = make_http_backend(settings);
    EXPECT_TRUE(backend.ok()) << backend.error().message();
    return backend.ok() ? std::move(backend).value() : nullptr;
  }
  std::shared_ptr<RemoteBackend> open() const { return open(settings()); }

  template <class Body>
  static std::int64_t ms_of(const Body& body) {
    const auto before = std::chrono::steady_clock::now();
    body();
    const auto spent = std::chrono::steady_clock::now() - before;
    return std::chrono::duration_cast<std::chrono::milliseconds>(spent).count();
  }
  static bool has(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
  }

  std::unique_ptr<testing::NginxServer> server;
};

}  // namespace chord::cache
