// Objects on a real web server: what is put comes back, from where it should be, at the price of
// one round trip.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/cache/remote/http_fixture.h"

namespace chord::cache {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class HttpBackendTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    if (!IsSkipped()) serve();
  }
  const CacheKey key = object_key("kernel");
};

TEST_F(HttpBackendTest, GivesBackWhatWasPut) {
  const auto backend = open();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{100} << 10, std::size_t{5} << 20}) {
    const std::string bytes = object_bytes(size);
    const Status put = backend->put(key, bytes);
    ASSERT_TRUE(put.ok()) << put.error().message();
    const TierAnswer answer = backend->get(key);
    ASSERT_EQ(answer.lookup, Lookup::value) << answer.reason;
    EXPECT_TRUE(answer.bytes == bytes) << size;
  }
}

TEST_F(HttpBackendTest, KeepsKeysApart) {
  const auto backend = open();
  ASSERT_TRUE(backend->put(object_key("one"), "bytes of one").ok());
  ASSERT_TRUE(backend->put(object_key("two"), "bytes of two").ok());
  EXPECT_EQ(backend->get(object_key("one")).bytes, "bytes of one");
  EXPECT_EQ(backend->get(object_key("two")).bytes, "bytes of two");
}

TEST_F(HttpBackendTest, SaysAbsentWhereNothingIs) {
  const TierAnswer answer = open()->get(key);
  EXPECT_EQ(answer.lookup, Lookup::absent);
  EXPECT_EQ(answer.bytes, "");
}

TEST_F(HttpBackendTest, HeadTellsWithoutATransfer) {
  const auto backend = open();
  EXPECT_EQ(backend->head(key).lookup, Lookup::absent);
  ASSERT_TRUE(backend->put(key, object_bytes(5 << 20)).ok());
  const TierAnswer answer = backend->head(key);
  EXPECT_EQ(answer.lookup, Lookup::value) << answer.reason;
  EXPECT_EQ(answer.bytes, "");
  const auto last = server->accesses(3).back();
  EXPECT_EQ(last.method, "HEAD");
  EXPECT_EQ(last.body_bytes, 0u);
}

TEST_F(HttpBackendTest, RemovesAnObject) {
  const auto backend = open();
  ASSERT_TRUE(backend->put(key, "bytes").ok());
  const Status removed = backend->remove(key);
  ASSERT_TRUE(removed.ok()) << removed.error().message();
  EXPECT_EQ(backend->get(key).lookup, Lookup::absent);
  EXPECT_EQ(server->accesses(3)[1].method, "DELETE");
}

TEST_F(HttpBackendTest, RemovingNothingIsSuccess) { EXPECT_TRUE(open()->remove(key).ok()); }

TEST_F(HttpBackendTest, SortsObjectsBySchemaAndFirstDigits) {
  ASSERT_TRUE(open()->put(key, "bytes").ok());
  const std::string path =
      "/cubins/v" + std::to_string(kSchemaVersion) + "/" + key.name.substr(0, 2) + "/" + key.name;
  EXPECT_EQ(file_text(server->objects() + path), "bytes");
}

TEST_F(HttpBackendTest, WorksAtTheRootOfAServer) {
  for (const char* path : {"", "/"}) {
    const auto backend = open(settings(path));
    ASSERT_TRUE(backend->put(key, path).ok());
    EXPECT_EQ(backend->get(key).bytes, path);
  }
  EXPECT_TRUE(std::filesystem::exists(server->objects() + "/v" + std::to_string(kSchemaVersion)));
}

TEST_F(HttpBackendTest, BazelLayoutIsFlatAndNamedBySha256OfTheText) {
  RemoteSettings bazel = settings("/ac");
  bazel.url.query["layout"] = "bazel";
  const auto backend = open(bazel);
  const CacheKey known{.text = {}, .name = "abc"};
  ASSERT_TRUE(backend->put(known, "bytes").ok());
  const std::string name = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(file_text(server->objects() + "/ac/" + name), "bytes");
  EXPECT_EQ(backend->get(known).bytes, "bytes");
}

TEST_F(HttpBackendTest, AsksNothingOfANameThatIsNoContentName) {
  const auto backend = open();
  const CacheKey odd{.text = "text", .name = "../../other"};
  EXPECT_EQ(backend->get(odd).lookup, Lookup::absent);
  EXPECT_EQ(backend->head(odd).lookup, Lookup::absent);
  EXPECT_FALSE(backend->put(odd, "bytes").ok());
  EXPECT_FALSE(backend->remove(odd).ok());
  ASSERT_EQ(backend->get(key).lookup, Lookup::absent);
  EXPECT_EQ(server->accesses(1).size(), 1u);
}

TEST_F(HttpBackendTest, TwentyCallsOfAKindNeedOneConnection) {
  const auto backend = open();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(backend->put(key, object_bytes(20000)).ok());
    ASSERT_EQ(backend->get(key).lookup, Lookup::value);
    ASSERT_EQ(backend->head(key).lookup, Lookup::value);
    ASSERT_EQ(backend->get(object_key("nowhere")).lookup, Lookup::absent);
  }
  EXPECT_EQ(server->connections(80), 1u);
}

TEST_F(HttpBackendTest, GoesToItsServerWhateverProxyTheEnvironmentNames) {
  for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"})
    ::setenv(name, "http://127.0.0.1:1", 1);
  const TierAnswer answer = open()->get(key);
  for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
  EXPECT_EQ(answer.lookup, Lookup::absent) << answer.reason;
}

TEST_F(HttpBackendTest, SendsNoObjectAboveTheBound) {
  const auto backend = open();
  const Status put = backend->put(key, std::string(kMaxObjectBytes + 1, 'x'));
  ASSERT_FALSE(put.ok());
  EXPECT_TRUE(has(put.error().message(), std::to_string(kMaxObjectBytes))) << put.error().message();
  ASSERT_EQ(backend->get(key).lookup, Lookup::absent);
  EXPECT_EQ(server->accesses(1).size(), 1u);
}

TEST_F(HttpBackendTest, IsCalledByItsPlace) {
  RemoteSettings named = settings("/cubins/");
  EXPECT_EQ(open(named)->name(), "http://127.0.0.1:" + std::to_string(server->port()) + "/cubins");
}

}  // namespace
}  // namespace chord::cache
