// Who is asking: a token, or user and password; and that nobody else learns them.
#include "tests/cache/remote/http_fixture.h"

namespace chord::cache {
namespace {

constexpr const char* kToken = "tok.3n-of~the+fleet/00==";
constexpr const char* kOther = "another-t0ken-that-nobody-knows";
// "reader:pass word" in base 64.
constexpr const char* kAskBasic =
    "if ($http_authorization != \"Basic cmVhZGVyOnBhc3Mgd29yZA==\") { return 401; }";

class HttpIdentityTest : public HttpTest {
 protected:
  RemoteSettings with_token(const std::string& token) const {
    RemoteSettings changed = settings();
    changed.token = token;
    return changed;
  }
  // Every text that the back-end gives to a caller, of calls that do not succeed.
  static std::string all_texts(RemoteBackend& backend, const CacheKey& key) {
    std::string texts =
        backend.name() + "\n" + backend.get(key).reason + "\n" + backend.head(key).reason + "\n";
    for (const Status& status : {backend.put(key, "bytes"), backend.remove(key)})
      texts += status.ok() ? "" : status.error().message() + "\n";
    return texts;
  }
  const CacheKey key = object_key("kernel");
};

TEST_F(HttpIdentityTest, TheRightTokenOpens) {
  serve({.token = kToken});
  const auto backend = open(with_token(kToken));
  const Status put = backend->put(key, "bytes");
  ASSERT_TRUE(put.ok()) << put.error().message();
  EXPECT_EQ(backend->get(key).bytes, "bytes");
  EXPECT_EQ(backend->head(key).lookup, Lookup::value);
  EXPECT_TRUE(backend->remove(key).ok());
}

TEST_F(HttpIdentityTest, AWrongTokenFailsAndSaysWhatToCheck) {
  serve({.token = kToken});
  const auto backend = open(with_token(kOther));
  const TierAnswer answer = backend->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "status 401")) << answer.reason;
  EXPECT_TRUE(has(answer.reason, "does not accept the token that was sent")) << answer.reason;
  const Status put = backend->put(key, object_bytes(1 << 20));
  ASSERT_FALSE(put.ok());
  EXPECT_TRUE(has(put.error().message(), "status 401")) << put.error().message();
}

TEST_F(HttpIdentityTest, AMissingTokenFailsAndSaysWhatToSet) {
  serve({.token = kToken});
  const TierAnswer answer = open()->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "set CHORD_REMOTE_TOKEN")) << answer.reason;
}

TEST_F(HttpIdentityTest, UserAndPasswordOpen) {
  serve({.more = kAskBasic});
  RemoteSettings basic = settings();
  basic.url.user = "reader";
  basic.url.password = "pass word";
  const auto backend = open(basic);
  ASSERT_TRUE(backend->put(key, "bytes").ok());
  EXPECT_EQ(backend->get(key).bytes, "bytes");
  EXPECT_EQ(server->accesses(2).size(), 2u);  // sent at once, not after a first refusal
}

TEST_F(HttpIdentityTest, APasswordBesideTheUrlGoesFirst) {
  serve({.more = kAskBasic});
  RemoteSettings basic = settings();
  basic.url.user = "reader";
  basic.url.password = "an old one";
  basic.password = "pass word";
  EXPECT_EQ(open(basic)->get(key).lookup, Lookup::absent);
  basic.password.clear();
  const TierAnswer answer = open(basic)->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "user and password")) << answer.reason;
}

TEST_F(HttpIdentityTest, NoTextTellsASecret) {
  serve({.token = kToken});
  RemoteSettings basic = settings();
  basic.url.user = "reader";
  basic.url.password = kOther;
  const auto by_password = open(basic);
  const auto by_token = open(with_token(kOther));
  std::string texts = all_texts(*by_password, key) + all_texts(*by_token, key);
  server->stop();
  texts += all_texts(*by_password, key) + all_texts(*by_token, key);
  EXPECT_TRUE(has(texts, "status 401")) << texts;
  EXPECT_TRUE(has(texts, "connect")) << texts;
  EXPECT_FALSE(has(texts, kOther)) << texts;
}

}  // namespace
}  // namespace chord::cache
