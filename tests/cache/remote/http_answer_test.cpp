// What a server may answer instead of an object: errors, redirects, too much, pages for people.
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "tests/cache/remote/http_fixture.h"

namespace chord::cache {
namespace {

class HttpAnswerTest : public HttpTest {
 protected:
  // One path for every status that is asked about: /status/507 answers 507 with a page.
  static std::string pages(std::initializer_list<int> statuses) {
    std::string lines;
    for (const int status : statuses)
      lines += "location /status/" + std::to_string(status) +
               "/ { default_type text/html; return " + std::to_string(status) +
               " '<html>a page</html>'; }\n";
    return lines;
  }
  std::shared_ptr<RemoteBackend> answering(int status) const {
    return open(settings("/status/" + std::to_string(status)));
  }
  std::string file_of(const CacheKey& key) const {
    const std::string folder = server->objects() + "/cubins/v" + std::to_string(kSchemaVersion) +
                               "/" + key.name.substr(0, 2);
    std::filesystem::create_directories(folder);
    return folder + "/" + key.name;
  }
  // Costs no memory: zeros that nobody wrote.
  static void make_zeros(const std::string& path, std::size_t size) {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, size);
  }
  const CacheKey key = object_key("kernel");
};

TEST_F(HttpAnswerTest, AnErrorFailsWithItsStatus) {
  serve({.more = pages({400, 403, 413, 429, 500, 502, 503, 507})});
  for (const int status : {400, 403, 413, 429, 500, 502, 503, 507}) {
    const auto backend = answering(status);
    const std::string text = "status " + std::to_string(status);
    const TierAnswer answer = backend->get(key);
    EXPECT_EQ(answer.lookup, Lookup::failed) << text;
    EXPECT_TRUE(has(answer.reason, text)) << answer.reason;
    const TierAnswer head = backend->head(key);
    EXPECT_EQ(head.lookup, Lookup::failed) << text;
    EXPECT_TRUE(has(head.reason, text)) << head.reason;
    const Status put = backend->put(key, object_bytes(1000));
    ASSERT_FALSE(put.ok()) << text;
    EXPECT_TRUE(has(put.error().message(), text)) << put.error().message();
    const Status removed = backend->remove(key);
    ASSERT_FALSE(removed.ok()) << text;
    EXPECT_TRUE(has(removed.error().message(), text)) << removed.error().message();
  }
}

TEST_F(HttpAnswerTest, APageIsNeverAValue) {
  serve({.more = pages({201, 202, 203, 206, 404, 410, 500})});
  for (const int status : {201, 202, 203, 206, 404, 410, 500}) {
    const TierAnswer answer = answering(status)->get(key);
    EXPECT_NE(answer.lookup, Lookup::value) << status;
    EXPECT_EQ(answer.bytes, "") << status;
  }
}

TEST_F(HttpAnswerTest, GoneIsAbsent) {
  serve({.more = pages({410})});
  EXPECT_EQ(answering(410)->get(key).lookup, Lookup::absent);
  EXPECT_EQ(answering(410)->head(key).lookup, Lookup::absent);
  EXPECT_TRUE(answering(410)->remove(key).ok());
}

TEST_F(HttpAnswerTest, PutTakesTheStatusesOfSuccessAlone) {
  serve({.more = pages({200, 201, 202, 204, 404})});
  for (const int status : {200, 201, 204})
    EXPECT_TRUE(answering(status)->put(key, "bytes").ok()) << status;
  for (const int status : {202, 404})
    EXPECT_FALSE(answering(status)->put(key, "bytes").ok()) << status;
}

TEST_F(HttpAnswerTest, AServerThatTakesLessSaysSo) {
  serve({.more = "client_max_body_size 10k;"});
  const Status put = open()->put(key, object_bytes(5 << 20));
  ASSERT_FALSE(put.ok());
  EXPECT_TRUE(has(put.error().message(), "status 413")) << put.error().message();
}

TEST_F(HttpAnswerTest, ARedirectIsNotFollowed) {
  serve({.more = "location /moved/ { rewrite ^/moved/(.*)$ /cubins/$1 redirect; }"});
  ASSERT_TRUE(open()->put(key, "bytes").ok());
  const TierAnswer answer = open(settings("/moved"))->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "status 302: a redirect, which is not followed")) << answer.reason;
  ASSERT_EQ(open()->head(key).lookup, Lookup::value);
  EXPECT_EQ(server->accesses(3).size(), 3u);
}

TEST_F(HttpAnswerTest, AnObjectAboveTheBoundIsRefusedByItsLength) {
  serve();
  make_zeros(file_of(key), kMaxObjectBytes + 1);
  const TierAnswer answer = open()->get(key);
  EXPECT_EQ(answer.lookup, Lookup::refused);
  EXPECT_TRUE(answer.bytes.empty());
  EXPECT_TRUE(has(answer.reason, std::to_string(kMaxObjectBytes))) << answer.reason;
}

// sub_filter makes nginx forget the length, so that only counting helps.
TEST_F(HttpAnswerTest, AnObjectAboveTheBoundIsRefusedWhileItComes) {
  serve({.more = "sub_filter_types *; sub_filter 'nothing like it' '';"});
  make_zeros(file_of(key), kMaxObjectBytes + 1);
  const auto backend = open();
  const TierAnswer answer = backend->get(key);
  EXPECT_EQ(answer.lookup, Lookup::refused);
  EXPECT_TRUE(answer.bytes.empty());
  EXPECT_TRUE(has(answer.reason, std::to_string(kMaxObjectBytes))) << answer.reason;
  std::filesystem::resize_file(file_of(key), kMaxObjectBytes);
  EXPECT_EQ(backend->get(key).bytes.size(), kMaxObjectBytes);
}

TEST_F(HttpAnswerTest, AnErrorIsOneHoweverLongItsPage) {
  serve({.more = "error_page 404 =500 /cubins/page;"});
  std::filesystem::create_directories(server->objects() + "/cubins");
  make_zeros(server->objects() + "/cubins/page", kMaxObjectBytes + 1);
  const TierAnswer answer = open()->get(key);
  EXPECT_EQ(answer.lookup, Lookup::failed);
  EXPECT_TRUE(has(answer.reason, "status 500")) << answer.reason;
}

}  // namespace
}  // namespace chord::cache
