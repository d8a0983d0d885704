// A Redis server that refuses, hangs, resets, trickles, talks nonsense, dies and comes back: every
// call ends by its deadline, says what happened, and the same object works again afterwards.
#include <functional>

#include "tests/cache/remote/redis_fixture.h"

namespace chord::cache {
namespace {

constexpr int kDeadlineMs = 150;

class RedisFaultTest : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (!server) return;
    proxy = std::make_unique<testing::FaultProxy>(server->port());
    store = backend_at(url_of_port(proxy->port()), kDeadlineMs);
    ASSERT_TRUE(patient()->put(key, bytes).ok());
  }
  // Of no use for faults, but not in a hurry.
  std::shared_ptr<RemoteBackend> patient() const { return backend_at(server->url(), 10000); }

  // All four calls fail in time, and with these words.
  void expect_failures(const std::string& words) {
    const std::function<std::string()> calls[] = {
        [&] { return reason_of(store->get(key)); },
        [&] { return reason_of(store->head(key)); },
        [&] { return reason_of(store->put(key, bytes)); },
        [&] { return reason_of(store->remove(key)); },
    };
    for (const auto& call : calls) {
      const Stopwatch watch;
      const std::string reason = call();
      EXPECT_LT(watch.ms(), kDeadlineMs + kSlackMs) << reason;
      EXPECT_NE(reason.find(words), std::string::npos) << reason;
      EXPECT_NE(reason.find(store->name()), std::string::npos) << reason;
    }
  }
  static std::string reason_of(const TierAnswer& answer) {
    return answer.lookup == Lookup::failed ? answer.reason : "it did not fail";
  }
  static std::string reason_of(const Status& status) {
    return status.ok() ? "it did not fail" : status.error().message();
  }
  // Some tries: a busy machine may miss so short a deadline.
  void expect_recovery() {
    TierAnswer answer;
    for (int i = 0; i < 20 && answer.lookup != Lookup::value; ++i) {
      ASSERT_TRUE(patient()->put(key, bytes).ok());
      answer = store->get(key);
    }
    EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
    EXPECT_TRUE(answer.bytes == bytes);
  }
  void use_once() { EXPECT_EQ(store->get(key).lookup, Lookup::value); }

  std::unique_ptr<testing::FaultProxy> proxy;
  std::shared_ptr<RemoteBackend> store;
  const std::string bytes = std::string(20000, 'c');
};

TEST_F(RedisFaultTest, SaysThatTheServerRefuses) {
  proxy->refuse();
  expect_failures("Connection refused");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatTheServerHangs) {
  proxy->hang();
  expect_failures("no answer in 150 ms");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatAServerHangsThatWasFineBefore) {
  use_once();
  proxy->hang();
  expect_failures("no answer in 150 ms");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatAStoppedProcessHangs) {
  use_once();
  ASSERT_EQ(::kill(server->pid(), SIGSTOP), 0);
  const Stopwatch watch;
  EXPECT_NE(reason_of(store->get(key)).find("no answer"), std::string::npos);
  EXPECT_LT(watch.ms(), kDeadlineMs + kSlackMs);
  ASSERT_EQ(::kill(server->pid(), SIGCONT), 0);
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatTheServerResetsTheConnectionInMidReply) {
  use_once();
  for (const int reply_bytes : {0, 1, 3}) {
    proxy->reset_mid_reply(reply_bytes);
    expect_failures("reset");
  }
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatTheServerClosesInMidObject) {
  proxy->reset_mid_reply(10000);
  EXPECT_NE(reason_of(store->get(key)).find("reset"), std::string::npos);
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, EndsByItsDeadlineThoughBytesTrickleIn) {
  for (const int ms_per_byte : {1000, 20}) {
    proxy->trickle(ms_per_byte);
    const Stopwatch watch;
    const std::string reason = reason_of(store->get(key));
    EXPECT_LT(watch.ms(), kDeadlineMs + kSlackMs);
    EXPECT_NE(reason.find("bytes of an answer in 150 ms"), std::string::npos) << reason;
  }
  proxy->trickle(1000);
  expect_failures("bytes of an answer in 150 ms");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SharesOneDeadlineBetweenAllStepsOfACall) {
  start({.password = "hunter2"});
  proxy = std::make_unique<testing::FaultProxy>(server->port());
  RemoteSettings settings = settings_of(url_of_port(proxy->port()) + "/1", 300);
  settings.password = "hunter2";
  store = backend_of(settings);
  // AUTH alone takes 5 x 40 ms, SELECT as long: no step is too late on its own.
  proxy->trickle(40);
  const Stopwatch watch;
  EXPECT_NE(reason_of(store->get(key)).find("SELECT"), std::string::npos);
  EXPECT_LT(watch.ms(), 300 + kSlackMs);
}

TEST_F(RedisFaultTest, EndsByItsDeadlineThoughNothingIsReadFromIt) {
  use_once();
  proxy->hang();
  const std::string much(std::size_t{16} << 20, 'c');
  const Stopwatch watch;
  const std::string reason = reason_of(store->put(key, much));
  EXPECT_LT(watch.ms(), kDeadlineMs + kSlackMs);
  EXPECT_NE(reason.find("in 150 ms"), std::string::npos) << reason;
}

TEST_F(RedisFaultTest, SaysThatWhatAnswersIsNoRedisServer) {
  use_once();
  proxy->wrong_bytes("HTTP/1.1 400 Bad Request\r\n\r\n");
  expect_failures("check that a Redis server listens there");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, SaysThatTheAnswerIsOfAnotherKind) {
  proxy->wrong_bytes("*2\r\n:1\r\n:2\r\n");
  expect_failures("an array");
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, IsNotLedToAllocateWhatAServerClaims) {
  std::string nest;
  for (int i = 0; i < 100000; ++i) nest += "*1\r\n";
  for (const std::string& reply : {std::string("*2000000000\r\n"), nest}) {
    proxy->wrong_bytes(reply);
    EXPECT_GE(store->get(key).lookup, Lookup::refused);  // or failed
    EXPECT_EQ(store->head(key).lookup, Lookup::failed);
  }
  // An object of which only the length is ever there costs no more than that.
  proxy->wrong_bytes("$2000000000\r\nabc");
  EXPECT_EQ(store->get(key).lookup, Lookup::failed);
  proxy->pass();
  expect_recovery();
}

TEST_F(RedisFaultTest, FailsWhileTheServerIsAwayAndWorksWhenItIsBack) {
  store = backend_at(server->url(), kDeadlineMs);
  use_once();
  server->stop();
  expect_failures("at redis://127.0.0.1");
  ASSERT_TRUE(server->start());
  expect_recovery();
}

TEST_F(RedisFaultTest, DoesNotNoticeARestartBetweenTwoCalls) {
  const auto direct = patient();
  EXPECT_EQ(direct->get(key).lookup, Lookup::value);
  server->stop();
  ASSERT_TRUE(server->start());
  EXPECT_EQ(direct->get(key).lookup, Lookup::absent);
  EXPECT_TRUE(direct->put(key, bytes).ok());
}

TEST_F(RedisFaultTest, DoesNotNoticeThatKeptConnectionsWereCut) {
  use_once();
  proxy->cut();
  use_once();
  EXPECT_EQ(proxy->connections(), 2);
}

TEST_F(RedisFaultTest, SaysThatAHostHasNoAddress) {
  store = backend_at("redis://no-such-host.invalid", kDeadlineMs);
  expect_failures("no-such-host.invalid");
}

TEST_F(RedisFaultTest, SaysThatASocketIsNotThere) {
  store = backend_at("redis+unix://" + server->socket() + ".not", kDeadlineMs);
  expect_failures("No such file");
}

}  // namespace
}  // namespace chord::cache
