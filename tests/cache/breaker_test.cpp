// A breaker opens on a failure, lets one caller try after a pause, and doubles the pause.
#include "cache/breaker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/log_recorder.h"

namespace chord::cache {
namespace {

class BreakerTest : public ::testing::Test {
 protected:
  void pass(std::int64_t ms) { clock.sleep_ms(ms); }

  testing::FakeClock clock;
  Breaker breaker{clock};
};

TEST_F(BreakerTest, IsClosedUntilAFailure) {
  EXPECT_TRUE(breaker.lets_through());
  EXPECT_TRUE(breaker.lets_through());
  EXPECT_EQ(breaker.state(), BreakerState::closed);
  EXPECT_EQ(breaker.failed(), Breaker::kFirstPauseMs);
  EXPECT_FALSE(breaker.lets_through());
  EXPECT_EQ(breaker.state(), BreakerState::open);
  EXPECT_EQ(breaker.opened(), 1u);
}

TEST_F(BreakerTest, LetsOneCallerTryAfterThePause) {
  breaker.failed();
  pass(Breaker::kFirstPauseMs);
  EXPECT_EQ(breaker.state(), BreakerState::half_open);
  EXPECT_TRUE(breaker.lets_through());
  EXPECT_FALSE(breaker.lets_through());
  breaker.succeeded();
  EXPECT_EQ(breaker.state(), BreakerState::closed);
  EXPECT_TRUE(breaker.lets_through());
  EXPECT_TRUE(breaker.lets_through());
}

TEST_F(BreakerTest, DoublesThePauseUpToAMinute) {
  std::int64_t expected = Breaker::kFirstPauseMs;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(breaker.failed(), expected);
    pass(expected - 1);
    EXPECT_FALSE(breaker.lets_through());
    pass(1);
    EXPECT_TRUE(breaker.lets_through());
    expected = std::min(2 * expected, Breaker::kLongestPauseMs);
  }
  breaker.succeeded();
  EXPECT_EQ(breaker.failed(), Breaker::kFirstPauseMs);
}

TEST_F(BreakerTest, ManyCallersThatFailTogetherAreOneFailure) {
  for (int i = 0; i < 8; ++i) EXPECT_EQ(breaker.failed(), Breaker::kFirstPauseMs);
  EXPECT_EQ(breaker.opened(), 1u);
}

TEST_F(BreakerTest, ACallerThatNeverReportsDoesNotKeepItHalfOpen) {
  breaker.failed();
  pass(Breaker::kFirstPauseMs);
  EXPECT_TRUE(breaker.lets_through());
  pass(Breaker::kLongestPauseMs - 1);
  EXPECT_FALSE(breaker.lets_through());
  pass(1);
  EXPECT_TRUE(breaker.lets_through());
}

TEST_F(BreakerTest, OneOfManyThreadsTries) {
  breaker.failed();
  pass(Breaker::kFirstPauseMs);
  std::atomic<int> through{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] { through += breaker.lets_through() ? 1 : 0; });
  }
  EXPECT_EQ(through, 1);
}

}  // namespace
}  // namespace chord::cache
