// A web server, or the way to it, that misbehaves: every call ends at its deadline or before, says
// why, and the next one after the fault gets its object.
#include <functional>

#include "tests/cache/remote/http_fixture.h"
#include "tests/support/fault_proxy.h"

namespace chord::cache {
namespace {

class HttpFaultTest : public HttpTest {
 protected:
  static constexpr std::int64_t kDeadline = 200;
  // Above the deadline: what a busy machine may add. Far below a wait without an end.
  static constexpr std::int64_t kSlack = 1500;

  void SetUp() override {
    HttpTest::SetUp();
    if (IsSkipped()) return;
    serve();
    proxy = std::make_unique<testing::FaultProxy>(server->port());
    ASSERT_TRUE(open()->put(key, bytes).ok());
    RemoteSettings short_of_time = settings_of(proxy->port());
    short_of_time.deadline_ms = kDeadline;
    backend = open(short_of_time);
  }

  using Call = std::function<std::string()>;  // why it failed; empty: it did not
  std::vector<Call> calls() {
    const auto reason = [](const TierAnswer& answer) {
      EXPECT_EQ(answer.bytes, "");
      return answer.lookup == Lookup::failed ? answer.reason : std::string();
    };
    const auto message = [](const Status& status) {
      return status.ok() ? std::string() : status.error().message();
    };
    return {[=, this] { return reason(backend->get(key)); },
            [=, this] { return reason(backend->head(key)); },
            [=, this] { return message(backend->put(key, bytes)); },
            [=, this] { return message(backend->remove(other)); }};
  }

  // Every call fails in time, for a reason that has `part`.
  void expect_failures(const std::string& part) {
    for (const Call& call : calls()) {
      std::string why;
      const std::int64_t spent = ms_of([&] { why = call(); });
      EXPECT_TRUE(!why.empty() && has(why, part)) << "'" << why << "' has no '" << part << "'";
      EXPECT_LT(spent, kDeadline + kSlack) << why;
    }
  }
  void expect_recovery() {
    proxy->pass();
    // A busy machine may need more than one deadline.
    TierAnswer answer;
    for (int i = 0; i < 20 && answer.lookup != Lookup::value; ++i) answer = backend->get(key);
    EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
    EXPECT_TRUE(answer.bytes == bytes);
  }

  const CacheKey key = object_key("kernel");
  const CacheKey other = object_key("other kernel");
  const std::string bytes = object_bytes(100'000);
  std::unique_ptr<testing::FaultProxy> proxy;
  std::shared_ptr<RemoteBackend> backend;
};

TEST_F(HttpFaultTest, PassesThroughAProxyThatDoesNothing) { expect_recovery(); }

TEST_F(HttpFaultTest, ARefusedConnectionFailsAtOnce) {
  proxy->refuse();
  expect_failures("connect");
  expect_recovery();
}

TEST_F(HttpFaultTest, AServerThatHangsCostsTheDeadline) {
  proxy->hang();
  expect_failures("no whole answer within 200 ms");
  expect_recovery();
}

TEST_F(HttpFaultTest, AServerThatHangsOnAKeptConnectionCostsTheDeadline) {
  expect_recovery();
  proxy->hang();
  expect_failures("no whole answer within 200 ms");
  expect_recovery();
}

TEST_F(HttpFaultTest, AResetInTheHeaderFails) {
  proxy->reset_mid_reply(20);
  expect_failures("");
  expect_recovery();
}

TEST_F(HttpFaultTest, AResetInTheBodyGivesNoPartOfIt) {
  proxy->reset_mid_reply(50'000);
  TierAnswer answer;
  EXPECT_LT(ms_of([&] { answer = backend->get(key); }), kDeadline + kSlack);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_EQ(answer.bytes, "");
  EXPECT_NE(answer.reason, "");
  expect_recovery();
}

TEST_F(HttpFaultTest, AByteASecondCostsTheDeadline) {
  proxy->trickle(1000);
  expect_failures("no whole answer within 200 ms");
  expect_recovery();
}

TEST_F(HttpFaultTest, ABodyThatTricklesCostsTheDeadline) {
  proxy->trickle(1);  // the header is there in time
  TierAnswer answer;
  EXPECT_LT(ms_of([&] { answer = backend->get(key); }), kDeadline + kSlack);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_EQ(answer.bytes, "");
  expect_recovery();
}

TEST_F(HttpFaultTest, AnAnswerOfAnotherProtocolIsNamed) {
  for (const char* reply : {"-ERR unknown command 'GET'\r\n", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    proxy->wrong_bytes(reply);
    proxy->cut();
    expect_failures("the answer is not HTTP");
  }
  expect_recovery();
}

TEST_F(HttpFaultTest, AHeaderWithoutAnEndIsBounded) {
  proxy->wrong_bytes("HTTP/1.1 200 OK\r\nX: " + std::string(1 << 20, 'x'));
  expect_failures("");
  expect_recovery();
}

TEST_F(HttpFaultTest, ABodyThatIsShorterThanItsLengthIsNoValue) {
  server->stop();  // the proxy closes after what it has
  proxy->wrong_bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
  TierAnswer answer;
  EXPECT_LT(ms_of([&] { answer = backend->get(key); }), kDeadline + kSlack);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_EQ(answer.bytes, "");
}

TEST_F(HttpFaultTest, ACutConnectionIsMadeAnew) {
  expect_recovery();
  for (int i = 0; i < 5; ++i) {
    proxy->cut();
    const TierAnswer answer = backend->get(key);
    EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
    proxy->cut();
    const Status put = backend->put(other, bytes);
    EXPECT_TRUE(put.ok()) << put.error().message();
  }
}

TEST_F(HttpFaultTest, AServerThatWasStartedAgainGoesOnServing) {
  RemoteSettings direct = settings();
  backend = open(direct);
  ASSERT_EQ(backend->get(key).lookup, Lookup::value);
  server->stop();
  EXPECT_EQ(backend->get(key).lookup, Lookup::failed);
  server->start();
  ASSERT_TRUE(server->is_up()) << server->error_log();
  const TierAnswer answer = backend->get(key);
  EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
  server->stop();
  server->start();
  ASSERT_TRUE(server->is_up()) << server->error_log();
  EXPECT_EQ(backend->get(key).lookup, Lookup::value);
}

}  // namespace
}  // namespace chord::cache
