// The Redis client by itself: replies, commands that wait, repeats, threads, forks and signals.
#include "cache/remote/redis_client.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/cache/remote/redis_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

constexpr int kPatientMs = 10000;

class RedisClientTest : public RedisTest {
 protected:
  static RedisReply ask(RedisClient& client, const RedisWords& words) {
    const auto reply = client.run(words, kPatientMs);
    EXPECT_TRUE(reply.ok()) << reply.error().message();
    return reply ? *reply : RedisReply{};
  }
  static std::int64_t connection_id(RedisClient& client) {
    return ask(client, {"CLIENT", "ID"}).integer;
  }
};

TEST_F(RedisClientTest, AnswersWithPlainValues) {
  const auto redis = client();
  EXPECT_EQ(ask(*redis, {"GET", "a"}).kind, RedisReply::Kind::nil);
  EXPECT_TRUE(ask(*redis, {"SET", "a", std::string_view("x\0\r\n", 4)}).is_text("OK"));
  EXPECT_TRUE(ask(*redis, {"GET", "a"}).is_text(std::string_view("x\0\r\n", 4)));
  EXPECT_EQ(ask(*redis, {"INCRBY", "n", "42"}).integer, 42);
  const RedisReply list = ask(*redis, {"MGET", "a", "b", "n"});
  ASSERT_EQ(list.kind, RedisReply::Kind::array);
  ASSERT_EQ(list.elements.size(), 3u);
  EXPECT_EQ(list.elements[1].kind, RedisReply::Kind::nil);
  EXPECT_TRUE(list.elements[2].is_text("42"));
}

TEST_F(RedisClientTest, GivesErrorsOfTheServerAsReplies) {
  const auto redis = client();
  const RedisReply reply = ask(*redis, {"NO-SUCH-COMMAND"});
  EXPECT_TRUE(reply.is_error());
  EXPECT_EQ(reply.error_word(), "ERR");
  ask(*redis, {"SET", "a", "x"});
  EXPECT_EQ(ask(*redis, {"LPUSH", "a", "x"}).error_word(), "WRONGTYPE");
  EXPECT_EQ(ask(*redis, {"GET", "a"}).error_word(), "");
}

TEST_F(RedisClientTest, ReadsNestedArrays) {
  const auto redis = client();
  ask(*redis, {"XADD", "stream", "1-1", "field", "value"});
  const RedisReply reply = ask(*redis, {"XREAD", "COUNT", "1", "STREAMS", "stream", "0"});
  ASSERT_EQ(reply.elements.size(), 1u);
  const RedisReply& entry = reply.elements[0].elements.at(1).elements.at(0);
  EXPECT_TRUE(entry.elements.at(0).is_text("1-1"));
  EXPECT_TRUE(entry.elements.at(1).elements.at(1).is_text("value"));
}

TEST_F(RedisClientTest, WaitsForACommandThatWaits) {
  const auto redis = client();
  const Stopwatch watch;
  EXPECT_EQ(ask(*redis, {"BLPOP", "queue", "0.2"}).kind, RedisReply::Kind::nil);
  EXPECT_GE(watch.ms(), 190);
}

TEST_F(RedisClientTest, GivesUpACommandThatWaitsTooLongAndLosesNoJob) {
  const auto redis = client();
  const Stopwatch watch;
  EXPECT_FALSE(redis->run({"BLPOP", "queue", "60"}, 150).ok());
  EXPECT_LT(watch.ms(), 150 + kSlackMs);
  // The server has let go of that connection as soon as nobody is blocked.
  for (int i = 0; i < 500 && server->command({"INFO", "clients"}).find("blocked_clients:0") ==
                                 std::string::npos;
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ask(*redis, {"RPUSH", "queue", "job"});
  EXPECT_TRUE(ask(*redis, {"LPOP", "queue"}).is_text("job"));
}

TEST_F(RedisClientTest, OneThatWaitsDoesNotHoldUpTheOthers) {
  const auto redis = client();
  std::thread waiter([&] { (void)redis->run({"BLPOP", "queue", "60"}, kPatientMs); });
  while (server->command({"INFO", "clients"}).find("blocked_clients:1") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Stopwatch watch;
  ask(*redis, {"RPUSH", "queue", "job"});
  waiter.join();
  EXPECT_LT(watch.ms(), kPatientMs / 2);
}

TEST_F(RedisClientTest, KeepsItsConnection) {
  const auto redis = client();
  const std::int64_t first = connection_id(*redis);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(connection_id(*redis), first);
}

// The reply of SET is 5 bytes, of which 6 are let through: the kept connection ends one byte into
// the next reply, and a fresh one has room for it.
TEST_F(RedisClientTest, RepeatsOnceOnAFreshConnectionWhereThatIsSafe) {
  testing::FaultProxy proxy(server->port());
  proxy.reset_mid_reply(6);
  const auto redis = client(proxy.port());
  ask(*redis, {"SET", "a", "x"});
  const auto reply = redis->run({"GET", "b"}, kPatientMs, Repeat::once);
  ASSERT_TRUE(reply.ok()) << reply.error().message();
  EXPECT_EQ(reply.value().kind, RedisReply::Kind::nil);
  EXPECT_EQ(proxy.connections(), 2);
}

TEST_F(RedisClientTest, RepeatsNothingThatMightBeDoneTwice) {
  testing::FaultProxy proxy(server->port());
  proxy.reset_mid_reply(6);
  const auto redis = client(proxy.port());
  ask(*redis, {"SET", "a", "x"});
  EXPECT_FALSE(redis->run({"RPUSH", "queue", "job"}, kPatientMs).ok());
  EXPECT_EQ(server->command({"LLEN", "queue"}), "1");
}

// To a unix socket whose other end was closed, every write raises the signal.
TEST(RedisConnection, LetsNoSignalOfAClosedConnectionThrough) {
  const testing::TemporaryFolder folder;
  RedisAddress address;
  address.socket = folder / "s";
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.socket.copy(name.sun_path, sizeof name.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  std::thread server([&] { ::close(::accept(listener, nullptr, nullptr)); });

  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  // More than the socket buffers: the end comes while there is more to write.
  const std::string much(std::size_t{8} << 20, 'x');
  const auto reply = RedisClient(address).run({"SET", "a", much}, kPatientMs);
  server.join();
  ::close(listener);
  ASSERT_FALSE(reply.ok());
  EXPECT_NE(reply.error().message().find("Broken pipe"), std::string::npos);
}

TEST_F(RedisClientTest, GivesTheChildOfAForkConnectionsOfItsOwn) {
  const auto redis = client();
  const std::int64_t ours = connection_id(*redis);
  auto child = testing::ChildProcess::run([&] {
    ::alarm(20);
    const auto reply = redis->run({"CLIENT", "ID"}, kPatientMs);
    return reply.ok() && reply.value().integer != ours ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(connection_id(*redis), ours);
}

TEST_F(RedisClientTest, WorksInChildrenThatWereForkedInTheMidstOfCalls) {
  const auto redis = client();
  ask(*redis, {"SET", "a", "x"});
  std::atomic<bool> is_over{false};
  std::atomic<int> mixed_up{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!is_over)
        if (!ask(*redis, {"SET", "a", "x"}).is_text("OK")) ++mixed_up;
    });
  for (int i = 0; i < 60; ++i) {
    auto child = testing::ChildProcess::run([&] {
      ::alarm(20);
      for (int call = 0; call < 3; ++call)
        if (const auto reply = redis->run({"GET", "a"}, kPatientMs);
            !reply.ok() || !reply.value().is_text("x"))
          return 1;
      return 0;
    });
    EXPECT_EQ(child.wait(), 0);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed_up, 0);
}

TEST_F(RedisClientTest, LeavesNoConnectionToAProgramThatIsStarted) {
  const auto redis = client();
  ask(*redis, {"PING"});
  auto child = testing::ChildProcess::run([] {
    ::execl("/bin/sh", "sh", "-c", "ls -l /proc/self/fd | grep -q socket:", nullptr);
    return 99;
  });
  EXPECT_EQ(child.wait(), 1);
}

}  // namespace
}  // namespace chord::cache
