// One back-end in many threads, and in a child after a fork.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/cache/remote/http_fixture.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizer.h"

namespace chord::cache {
namespace {

class HttpProcessTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    if (!IsSkipped()) serve();
  }
  static std::string bytes_of(int number) { return object_bytes(1000 + 977 * number); }
  static CacheKey key_of(int number) { return object_key("kernel " + std::to_string(number)); }
  static bool gives(RemoteBackend& backend, int number) {
    return backend.get(key_of(number)).bytes == bytes_of(number);
  }
  void fill(RemoteBackend& backend, int objects) {
    for (int i = 0; i < objects; ++i) ASSERT_TRUE(backend.put(key_of(i), bytes_of(i)).ok());
  }
};

TEST_F(HttpProcessTest, ThreadsGetTheirOwnObjectsOnAConnectionEach) {
  constexpr int kThreads = 8;
  const auto backend = open();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        const int number = 20 * thread + i;
        if (!backend->put(key_of(number), bytes_of(number)).ok()) ++wrong;
        if (!gives(*backend, number)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(server->connections(kThreads * 40), std::size_t{kThreads});
}

TEST_F(HttpProcessTest, AChildHasConnectionsOfItsOwn) {
  const auto backend = open();
  fill(*backend, 2);
  auto child = testing::ChildProcess::run([&] {
    for (int i = 0; i < 10; ++i)
      if (!gives(*backend, i % 2)) return 1;
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(gives(*backend, i % 2));
  EXPECT_EQ(server->connections(22), 2u);
}

TEST_F(HttpProcessTest, ParentAndChildCallAtTheSameTime) {
  const auto backend = open();
  fill(*backend, 4);
  auto child = testing::ChildProcess::run([&] {
    for (int i = 0; i < 100; ++i)
      if (!gives(*backend, i % 4)) return 1;
    return 0;
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(gives(*backend, i % 4));
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(HttpProcessTest, AForkInTheMiddleOfOtherThreadsCallsHarmsNobody) {
  CHORD_SKIP_UNDER_SANITIZERS("a child of threads may wait for ever in a sanitizer's allocator");
  const auto backend = open();
  fill(*backend, 4);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      while (!ends)
        if (!gives(*backend, thread)) ++wrong;
    });
  for (int i = 0; i < 20; ++i) {
    auto child = testing::ChildProcess::run([&] { return gives(*backend, i % 4) ? 0 : 1; });
    EXPECT_EQ(child.wait(), 0);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace chord::cache
