// The Redis back-end on a real server: objects, names, rights, and what a server refuses.
#include "cache/remote/redis_backend.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/cache/remote/redis_fixture.h"

namespace chord::cache {
namespace {

using RedisBackendTest = RedisTest;

std::string bytes_of_every_value() {
  std::string bytes;
  for (int i = 0; i < 70000; ++i) bytes += static_cast<char>(i * 7 + i / 256);
  return bytes;
}

void expect_round_trip(RemoteBackend& backend, const CacheKey& key) {
  EXPECT_EQ(backend.get(key).lookup, Lookup::absent);
  EXPECT_EQ(backend.head(key).lookup, Lookup::absent);
  const std::string bytes = bytes_of_every_value();
  const Status put = backend.put(key, bytes);
  ASSERT_TRUE(put.ok()) << put.error().message();
  const TierAnswer answer = backend.get(key);
  EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
  EXPECT_TRUE(answer.bytes == bytes);
  EXPECT_EQ(backend.head(key).lookup, Lookup::value);
  EXPECT_EQ(backend.head(key).bytes, "");
  EXPECT_TRUE(backend.remove(key).ok());
  EXPECT_EQ(backend.get(key).lookup, Lookup::absent);
  EXPECT_TRUE(backend.remove(key).ok()) << "what is not there is removed";
}

TEST_F(RedisBackendTest, KeepsObjectsOverTcp) { expect_round_trip(*backend(), key); }

TEST_F(RedisBackendTest, KeepsObjectsOverAUnixSocket) {
  expect_round_trip(*backend_at("redis+unix://" + server->socket()), key);
}

TEST_F(RedisBackendTest, FindsTheServerByAHostName) {
  expect_round_trip(*backend_at("redis://localhost:" + std::to_string(server->port())), key);
}

TEST_F(RedisBackendTest, KeepsAnEmptyObject) {
  const auto store = backend();
  ASSERT_TRUE(store->put(key, "").ok());
  EXPECT_EQ(store->get(key).lookup, Lookup::value);
}

TEST_F(RedisBackendTest, NamesObjectsByPrefixSchemaAndKey) {
  ASSERT_TRUE(backend()->put(key, "one").ok());
  ASSERT_TRUE(backend("?prefix=team7/")->put(key, "two").ok());
  EXPECT_EQ(server->command({"GET", "chord:v2:" + key.name}), "one");
  EXPECT_EQ(server->command({"GET", "team7/v2:" + key.name}), "two");
  EXPECT_EQ(server->command({"DBSIZE"}), "2");
}

TEST_F(RedisBackendTest, KeepsObjectsInItsDatabase) {
  ASSERT_TRUE(backend("/3")->put(key, "three").ok());
  ASSERT_TRUE(
      backend_at("redis+unix://" + server->socket() + "?database=4")->put(key, "four").ok());
  EXPECT_EQ(backend("/3")->get(key).bytes, "three");
  EXPECT_EQ(backend("/4")->get(key).bytes, "four");
  EXPECT_EQ(backend()->get(key).lookup, Lookup::absent);
}

TEST_F(RedisBackendTest, SaysThatADatabaseIsNotThere) {
  const TierAnswer answer = backend("/99")->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_NE(answer.reason.find("SELECT"), std::string::npos) << answer.reason;
}

TEST_F(RedisBackendTest, LetsObjectsExpireWhereToldTo) {
  ASSERT_TRUE(backend("?ttl=1000")->put(key, "bytes").ok());
  const int left = std::stoi(server->command({"TTL", "chord:v2:" + key.name}));
  EXPECT_TRUE(left > 900 && left <= 1000) << left;
  ASSERT_TRUE(backend()->put(key, "bytes").ok());
  EXPECT_EQ(server->command({"TTL", "chord:v2:" + key.name}), "-1");
}

TEST_F(RedisBackendTest, IsNamedWithoutSecrets) {
  EXPECT_EQ(backend_at("redis://farm:hunter2@cache:1234/2")->name(), "redis://cache:1234/2");
}

TEST_F(RedisBackendTest, GivesThePasswordBesideTheUrl) {
  start({.password = "hunter2"});
  RemoteSettings settings = settings_of(server->url());
  settings.password = "hunter2";
  expect_round_trip(*backend_of(settings), key);
}

TEST_F(RedisBackendTest, GivesUserAndPassword) {
  start({.password = "hunter2", .user = "farm", .user_password = "s@cret/"});
  const std::string place = "127.0.0.1:" + std::to_string(server->port());
  expect_round_trip(*backend_at("redis://farm:s%40cret%2F@" + place + "/2"), key);
  RemoteSettings settings = settings_of("redis+unix://farm@" + server->socket());
  settings.password = "s@cret/";
  expect_round_trip(*backend_of(settings), key);
}

TEST_F(RedisBackendTest, SaysThatThePasswordIsMissingOrWrong) {
  start({.password = "hunter2"});
  const TierAnswer missing = backend()->get(key);
  EXPECT_EQ(missing.lookup, Lookup::failed);
  EXPECT_NE(missing.reason.find("NOAUTH"), std::string::npos) << missing.reason;
  RemoteSettings settings = settings_of(server->url());
  settings.password = "hunter3";
  const TierAnswer wrong = backend_of(settings)->get(key);
  EXPECT_EQ(wrong.lookup, Lookup::failed);
  EXPECT_NE(wrong.reason.find("WRONGPASS"), std::string::npos) << wrong.reason;
  EXPECT_EQ(wrong.reason.find("hunter3"), std::string::npos) << wrong.reason;
}

TEST_F(RedisBackendTest, KeepsThePasswordThatAServerRepeatsToItself) {
  start({.more = {"--rename-command", "AUTH", "another-name"}});
  for (const std::string& password : {std::string("hunter2"), std::string(150, 'h') + "unter2"}) {
    RemoteSettings settings = settings_of(server->url());
    settings.password = password;
    const TierAnswer answer = backend_of(settings)->get(key);
    EXPECT_EQ(answer.lookup, Lookup::failed);
    EXPECT_NE(answer.reason.find("unknown command"), std::string::npos) << answer.reason;
    EXPECT_EQ(answer.reason.find(password.substr(0, 7)), std::string::npos) << answer.reason;
  }
}

TEST_F(RedisBackendTest, RefusesAnObjectOfAnotherType) {
  server->command({"LPUSH", "chord:v2:" + key.name, "x"});
  const TierAnswer answer = backend()->get(key);
  EXPECT_EQ(answer.lookup, Lookup::refused);
  EXPECT_NE(answer.reason.find("WRONGTYPE"), std::string::npos) << answer.reason;
}

TEST_F(RedisBackendTest, RefusesAnObjectFarAboveAnyEntry) {
  const std::string last = std::to_string(kMaxObjectBytes + 10000);
  server->command({"SETRANGE", "chord:v2:" + key.name, last, "x"});
  const auto store = backend_at(server->url(), 20000);
  const TierAnswer answer = store->get(key);
  EXPECT_EQ(answer.lookup, Lookup::refused);
  EXPECT_NE(answer.reason.find("more than"), std::string::npos) << answer.reason;
  EXPECT_EQ(store->get(key_of("other")).lookup, Lookup::absent);
  EXPECT_FALSE(store->put(key, std::string(kMaxObjectBytes + 1, 'x')).ok());
}

TEST_F(RedisBackendTest, SaysThatAServerTakesNoWrites) {
  server->command({"REPLICAOF", "127.0.0.1", "1"});
  const Status replica = backend()->put(key, "bytes");
  ASSERT_FALSE(replica.ok());
  EXPECT_NE(replica.error().message().find("READONLY"), std::string::npos);
  server->command({"REPLICAOF", "NO", "ONE"});
  server->command({"CONFIG", "SET", "maxmemory", "1"});
  const Status full = backend()->put(key, "bytes");
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message().find("OOM"), std::string::npos);
}

TEST_F(RedisBackendTest, IsUsedByThreadsOverAsManyConnectionsAtMost) {
  testing::FaultProxy proxy(server->port());
  const auto store = backend_at(url_of_port(proxy.port()), 10000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const CacheKey own = key_of(std::to_string(thread) + "." + std::to_string(i));
        const std::string bytes = own.name + std::string(static_cast<std::size_t>(i * 300), 'x');
        if (!store->put(own, bytes).ok() || store->get(own).bytes != bytes) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(proxy.connections(), 8);
}

}  // namespace
}  // namespace chord::cache
