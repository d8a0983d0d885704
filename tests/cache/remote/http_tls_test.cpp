// https: the server is who its certificate says, or there is no answer.
#include "tests/cache/remote/http_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

class HttpTlsTest : public HttpTest {
 protected:
  void SetUp() override {
    if (const std::string why = testing::NginxServer::why_not_tls(); !why.empty())
      GTEST_SKIP() << why;
    serve({.tls = true});
  }
  RemoteSettings with_ca(const std::string& file) const {
    RemoteSettings secure = settings();
    secure.url.scheme = "https";
    if (!file.empty()) secure.url.query["ca"] = file;
    return secure;
  }
  RemoteSettings right() const { return with_ca(server->ca_file()); }
  const CacheKey key = object_key("kernel");
};

TEST_F(HttpTlsTest, TheRightCaOpens) {
  const auto backend = open(right());
  const std::string bytes = object_bytes(100'000);
  const Status put = backend->put(key, bytes);
  ASSERT_TRUE(put.ok()) << put.error().message();
  EXPECT_TRUE(backend->get(key).bytes == bytes);
  EXPECT_EQ(server->connections(2), 1u);
}

TEST_F(HttpTlsTest, AnotherCaDoesNot) {
  testing::TemporaryFolder folder;
  ASSERT_TRUE(testing::make_certificate(folder.path()));
  const auto backend = open(with_ca(folder / "certificate.pem"));
  const TierAnswer answer = backend->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "certificate")) << answer.reason;
  EXPECT_TRUE(has(answer.reason, "?ca=")) << answer.reason;
  EXPECT_FALSE(backend->put(key, "bytes").ok());
  EXPECT_EQ(open(right())->get(key).lookup, Lookup::absent);
}

TEST_F(HttpTlsTest, WithoutACaTheSystemsDecide) {
  const TierAnswer answer = open(with_ca(""))->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "certificate")) << answer.reason;
}

TEST_F(HttpTlsTest, ACertificateOfAnotherHostDoesNotOpen) {
  RemoteSettings other = right();
  other.url.host = "localhost";  // the certificate is of 127.0.0.1
  const TierAnswer answer = open(other)->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "localhost")) << answer.reason;
}

TEST_F(HttpTlsTest, AMissingCaFileIsNamed) {
  testing::TemporaryFolder folder;
  const std::string missing = folder / "none.pem";
  const TierAnswer answer = open(with_ca(missing))->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, missing)) << answer.reason;
}

TEST_F(HttpTlsTest, AServerWithoutTlsIsNoAnswer) {
  serve();
  const TierAnswer answer = open(with_ca(""))->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_NE(answer.reason, "");
}

TEST_F(HttpTlsTest, AServerThatWasStartedAgainGoesOnServing) {
  const auto backend = open(right());
  for (int i = 0; i < 3; ++i) {
    const Status put = backend->put(key, object_bytes(1 << 20));
    EXPECT_TRUE(put.ok()) << put.error().message();
    server->stop();
    EXPECT_FALSE(backend->put(key, "bytes").ok());
    server->start();
    ASSERT_TRUE(server->is_up()) << server->error_log();
  }
}

// Freeing an inherited connection would end the session, in words to the server, under the parent.
TEST_F(HttpTlsTest, AChildThatEndsLeavesTheParentsSessionAlone) {
  auto backend = open(right());
  ASSERT_TRUE(backend->put(key, "bytes").ok());
  auto idle = testing::ChildProcess::run([&] {
    backend.reset();
    return 0;
  });
  EXPECT_EQ(idle.wait(), 0);
  EXPECT_EQ(backend->get(key).bytes, "bytes");
  EXPECT_EQ(server->connections(2), 1u);
  auto busy = testing::ChildProcess::run([&] {
    const bool is_right = backend->get(key).bytes == "bytes";
    backend.reset();
    return is_right ? 0 : 1;
  });
  EXPECT_EQ(busy.wait(), 0);
  EXPECT_EQ(backend->get(key).bytes, "bytes");
  EXPECT_EQ(server->connections(4), 2u);
}

}  // namespace
}  // namespace chord::cache
