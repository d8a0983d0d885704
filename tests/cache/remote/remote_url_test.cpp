// URLs of remote stores: what they mean, what is refused, and that no secret is ever repeated.
#include "cache/remote/remote_url.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cache/remote/redis_tls.h"

namespace chord::cache {
namespace {

RemoteUrl parsed(const std::string& text) {
  const auto url = parse_remote_url(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.error().message();
  return url ? *url : RemoteUrl{};
}

std::string refusal(const std::string& text) {
  const auto url = parse_remote_url(text);
  EXPECT_FALSE(url.ok()) << text;
  return url ? "" : url.error().message();
}

std::string backend_refusal(const std::string& text) {
  RemoteSettings settings;
  settings.url = parsed(text);
  const auto backend = make_backend(settings);
  EXPECT_FALSE(backend.ok()) << text;
  return backend ? "" : backend.error().message();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RemoteUrl, HasUserHostPortPathAndQuery) {
  const RemoteUrl url = parsed("redis://farm:pa%3Ass@cache.node-7:6380/3?prefix=a%26b:&ttl=60");
  EXPECT_EQ(url.scheme, "redis");
  EXPECT_EQ(url.user, "farm");
  EXPECT_EQ(url.password, "pa:ss");
  EXPECT_EQ(url.host, "cache.node-7");
  EXPECT_EQ(url.port, 6380);
  EXPECT_EQ(url.path, "/3");
  EXPECT_EQ(url.query.at("prefix"), "a&b:");
  EXPECT_EQ(url.query.at("ttl"), "60");
}

TEST(RemoteUrl, NeedsOnlySchemeAndHost) {
  const RemoteUrl url = parsed("REDIS://cache");
  EXPECT_EQ(url.scheme, "redis");
  EXPECT_EQ(url.host, "cache");
  EXPECT_EQ(url.port, 0);
  EXPECT_EQ(url.path, "");
  EXPECT_TRUE(url.user.empty() && url.password.empty() && url.query.empty());
}

TEST(RemoteUrl, TakesAPasswordWithoutUserAndAUserWithoutPassword) {
  EXPECT_EQ(parsed("redis://:word@cache").password, "word");
  EXPECT_EQ(parsed("redis://:word@cache").user, "");
  EXPECT_EQ(parsed("redis://farm@cache").user, "farm");
  EXPECT_EQ(parsed("redis://farm@cache").password, "");
}

TEST(RemoteUrl, TakesIpv6InBrackets) {
  const RemoteUrl url = parsed("redis://farm@[fe80::1]:7000/1");
  EXPECT_EQ(url.host, "fe80::1");
  EXPECT_EQ(url.port, 7000);
  EXPECT_EQ(url.redacted(), "redis://[fe80::1]:7000/1");
}

TEST(RemoteUrl, TakesThePathOfASocket) {
  const RemoteUrl url = parsed("redis+unix:///run/my%20redis.sock?database=2");
  EXPECT_EQ(url.host, "");
  EXPECT_EQ(url.path, "/run/my redis.sock");
  EXPECT_EQ(url.query.at("database"), "2");
  EXPECT_EQ(parsed("redis+unix://farm@/run/redis.sock").user, "farm");
}

TEST(RemoteUrl, LeavesThePathOfAWebServerEncoded) {
  EXPECT_EQ(parsed("https://cache/a%2Fb?layout=bazel").path, "/a%2Fb");
}

TEST(RemoteUrl, RedactedHasNeitherPasswordNorUser) {
  EXPECT_EQ(parsed("redis://farm:hunter2@cache:6380/3?ttl=60").redacted(),
            "redis://cache:6380/3?ttl=60");
  EXPECT_EQ(parsed("https://token@cache/path").redacted(), "https://cache/path");
  EXPECT_EQ(parsed("redis://cache?password=hunter2").redacted(), "redis://cache?password=...");
}

TEST(RemoteUrl, RefusesWhatItCanNotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "scheme"},
      {"cache:6379", "scheme"},
      {"://cache", "scheme"},
      {"re dis://cache", "scheme"},
      {"redis://", "no host"},
      {"redis://:6379", "no host"},
      {"redis://cache:", "port"},
      {"redis://cache:0", "port"},
      {"redis://cache:65536", "port"},
      {"redis://cache:63x", "port"},
      {"redis://[::1", "']'"},
      {"redis://[cache]", "IPv6"},
      {"redis://[::1]6379", "follows"},
      {"redis://::1", "port"},
      {"redis://ca!che", "host"},
      {"redis://cache/ 1", "blank"},
      {"redis://cache/\x80", "ASCII"},
      {"redis://f%4@cache", "'%'"},
      {"redis://f%zz@cache", "'%'"},
      {"redis://f%00@cache", "control"},
      {"redis://cache?prefix=a%0Ab", "control"},
      {"redis://cache?prefix", "name=value"},
      {"redis://cache?=x", "name=value"},
      {"redis://cache?ttl=1&ttl=2", "twice"},
      {"redis://cache/1#part", "'#'"},
      {"redis+unix://run/redis.sock", "three slashes"},
      {"redis+unix://", "no path"},
  };
  for (const auto& [text, why] : cases) EXPECT_TRUE(has(refusal(text), why)) << refusal(text);
}

TEST(RemoteUrl, NeverRepeatsASecretInAnError) {
  for (const char* text : {
           "redis://:hunter2/x@cache",
           "redis://:hunter2@cache:port",
           "redis://farm:hunter2?@cache",
           "redis://farm:hunter2#@cache",
           "redis://:hunter2%zz@cache",
           "redis://:hunter2 @cache",
           "redis://farm:123/hunter2@cache",
           "hunter2@cache:6379",
           "redis://[hunter2",
           "redis://:hunter2@[::1",
           "redis+unix://:hunter2@cache/x",
           "redis://farm:hunter2@",
       })
    EXPECT_FALSE(has(refusal(text), "hunter2")) << refusal(text);
}

TEST(RemoteBackends, RefuseAnUnknownSchemeAndNameTheKnownOnes) {
  const std::string message = backend_refusal("memcached://cache");
  EXPECT_TRUE(has(message, "memcached")) << message;
  for (const std::string& scheme : known_schemes()) EXPECT_TRUE(has(message, scheme)) << message;
}

TEST(RemoteBackends, KnowTheSchemesOfThisBuild) {
  const std::vector<std::string> known = known_schemes();
  for (const char* scheme : {"redis", "redis+unix", "http", "https"})
    EXPECT_EQ(std::count(known.begin(), known.end(), scheme), 1) << scheme;
  EXPECT_EQ(std::count(known.begin(), known.end(), "rediss"), has_redis_tls() ? 1 : 0);
}

TEST(RemoteBackends, RefuseTlsByNameInABuildWithoutIt) {
  if (has_redis_tls()) GTEST_SKIP() << "this build has TLS to Redis";
  const std::string message = backend_refusal("rediss://farm:hunter2@cache");
  EXPECT_TRUE(has(message, "rediss://cache")) << message;
  EXPECT_TRUE(has(message, "hiredis 1.0")) << message;
  EXPECT_FALSE(has(message, "hunter2")) << message;
}

TEST(RemoteBackends, RefuseUnknownParametersAndNameTheKnownOnes) {
  const std::string message = backend_refusal("redis://cache?prefx=a&password=hunter2");
  EXPECT_TRUE(has(message, "prefix, ttl")) << message;
  EXPECT_FALSE(has(message, "hunter2")) << message;
  EXPECT_TRUE(has(backend_refusal("redis://cache?database=1"), "'database'"));
}

TEST(RemoteBackends, RefuseNumbersThatAreNone) {
  for (const char* text : {"redis://cache/x", "redis://cache/-1", "redis://cache/1/2",
                           "redis+unix:///run/redis.sock?database=x"})
    EXPECT_TRUE(has(backend_refusal(text), "database")) << text;
  for (const char* text : {"redis://cache?ttl=", "redis://cache?ttl=0", "redis://cache?ttl=1h"})
    EXPECT_TRUE(has(backend_refusal(text), "ttl")) << text;
  EXPECT_TRUE(has(backend_refusal("redis+unix:///" + std::string(200, 'a')), "107 bytes"));
}

}  // namespace
}  // namespace chord::cache
