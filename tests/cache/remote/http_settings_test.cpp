// What make_http_backend refuses before anything is sent: each by name, and without its secret.
#include <functional>

#include "tests/cache/remote/http_fixture.h"

namespace chord::cache {
namespace {

class HttpSettings : public ::testing::Test {
 protected:
  static RemoteSettings good() {
    RemoteSettings settings;
    settings.url.scheme = "https";
    settings.url.host = "cache.example.com";
    settings.url.path = "/cubins";
    return settings;
  }
  // The message; empty when the settings are taken.
  static std::string refusal(const std::function<void(RemoteSettings&)>& change) {
    RemoteSettings settings = good();
    change(settings);
    const auto backend = make_http_backend(settings);
    if (backend.ok()) return {};
    EXPECT_EQ(backend.error().code, ErrorCode::invalid_argument);
    return backend.error().message();
  }
  static void expect_refused(const std::string& part,
                             const std::function<void(RemoteSettings&)>& change) {
    const std::string message = refusal(change);
    EXPECT_NE(message.find(part), message.npos) << "'" << message << "' has no '" << part << "'";
    EXPECT_EQ(message.find("s3cret"), message.npos) << message;
  }
};

TEST_F(HttpSettings, GoodOnesAreTakenAndConnectToNothing) {
  EXPECT_EQ(refusal([](RemoteSettings&) {}), "");
}

TEST_F(HttpSettings, RefuseAnotherScheme) {
  expect_refused("http or https", [](RemoteSettings& s) { s.url.scheme = "ftp"; });
}

TEST_F(HttpSettings, RefuseNoHost) {
  expect_refused("names no host", [](RemoteSettings& s) { s.url.host.clear(); });
}

TEST_F(HttpSettings, RefuseAHostThatIsNone) {
  for (const char* host : {"a b", "user@host", "a/b", "a?b", "[::1"})
    expect_refused("can not be those", [&](RemoteSettings& s) { s.url.host = host; });
}

TEST_F(HttpSettings, RefuseAPathThatNeedsEscapes) {
  for (const char* path : {"/a b", "/a?b", "/a#b", "/a\nb", "/a\x7f"})
    expect_refused("percent form", [&](RemoteSettings& s) { s.url.path = path; });
}

TEST_F(HttpSettings, RefuseAnUnknownQuery) {
  expect_refused("'ttl' is not known here (known: ca, layout)",
                 [](RemoteSettings& s) { s.url.query["ttl"] = "3"; });
}

TEST_F(HttpSettings, RefuseAnUnknownLayout) {
  expect_refused("layout=bazel", [](RemoteSettings& s) { s.url.query["layout"] = "gradle"; });
}

TEST_F(HttpSettings, RefuseACaThatNothingUses) {
  expect_refused("'ca' without https", [](RemoteSettings& s) {
    s.url.scheme = "http";
    s.url.query["ca"] = "/some/ca.pem";
  });
  expect_refused("'ca' is empty", [](RemoteSettings& s) { s.url.query["ca"] = ""; });
}

TEST_F(HttpSettings, RefuseADeadlineOfNothing) {
  for (const std::int64_t ms : {0, -1})
    expect_refused("a deadline of", [&](RemoteSettings& s) { s.deadline_ms = ms; });
}

TEST_F(HttpSettings, RefuseTwoIdentities) {
  expect_refused("a token beside a user or password", [](RemoteSettings& s) {
    s.token = "s3cret";
    s.url.user = "reader";
  });
  expect_refused("a token beside a user or password", [](RemoteSettings& s) {
    s.token = "s3cret";
    s.password = "s3cret";
  });
}

TEST_F(HttpSettings, RefuseASecretThatWouldBeginAHeader) {
  for (const char* token : {"s3cret\r\nX: y", "s3cret ", "s3cret\n"})
    expect_refused("the token has", [&](RemoteSettings& s) { s.token = token; });
  expect_refused("control character", [](RemoteSettings& s) { s.password = "s3cret\nX: y"; });
  expect_refused("has a ':'", [](RemoteSettings& s) { s.url.user = "a:s3cret"; });
}

TEST_F(HttpSettings, NameTheHostInBracketsWhereItIsIpv6) {
  RemoteSettings settings = good();
  settings.url.host = "::1";
  settings.url.port = 8443;
  const auto backend = make_http_backend(settings);
  ASSERT_TRUE(backend.ok()) << backend.error().message();
  EXPECT_EQ((*backend)->name(), "https://[::1]:8443/cubins");
}

TEST_F(HttpSettings, NameHasNoSecret) {
  RemoteSettings settings = good();
  settings.url.user = "reader";
  settings.url.password = "s3cret";
  const auto backend = make_http_backend(settings);
  ASSERT_TRUE(backend.ok()) << backend.error().message();
  EXPECT_EQ((*backend)->name(), "https://cache.example.com/cubins");
}

}  // namespace
}  // namespace chord::cache
