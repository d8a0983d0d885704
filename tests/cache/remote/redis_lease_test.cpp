// Leases of a real Redis server: one holder, kept alive, taken over after a death, and never
// anybody else's that is extended or given back.
#include "cache/remote/redis_lease.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/cache/remote/redis_fixture.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizer.h"

namespace chord::cache {
namespace {

constexpr int kShortMs = 450;  // a third of it is a renewal's time, on a machine that is busy

class RedisLeaseTest : public RedisTest {
 protected:
  RedisLeaseSettings settings(std::int64_t ttl_ms = 15000) const {
    RedisLeaseSettings settings;
    settings.deadline_ms = 2000;
    settings.ttl_ms = ttl_ms;
    return settings;
  }
  // A service with a client of its own stands for another process.
  std::shared_ptr<RedisLeases> service(std::int64_t ttl_ms = 15000) const {
    return std::make_shared<RedisLeases>(client(), settings(ttl_ms));
  }
  std::string lease_name() const { return "chord:lease:" + key.name; }
  std::string value() const { return server->command({"GET", lease_name()}); }
  static void pause(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
};

TEST_F(RedisLeaseTest, HasOneHolderWhomTheOthersAreTold) {
  const LeaseAnswer first = service()->try_take(key);
  ASSERT_TRUE(first.held) << first.failure;
  const LeaseAnswer second = service()->try_take(key);
  EXPECT_FALSE(second.held);
  EXPECT_EQ(second.failure, "");
  EXPECT_EQ(second.holder.find("pid " + std::to_string(::getpid()) + " on "), 0u) << second.holder;
}

TEST_F(RedisLeaseTest, IsHeldByOneThreadOfManyOnly) {
  const auto leases = service();
  std::vector<LeaseAnswer> answers(8);
  std::vector<std::thread> threads;
  for (LeaseAnswer& answer : answers) threads.emplace_back([&] { answer = leases->try_take(key); });
  for (std::thread& thread : threads) thread.join();
  int held = 0;
  for (const LeaseAnswer& answer : answers) held += answer.held ? 1 : 0;
  EXPECT_EQ(held, 1);
}

TEST_F(RedisLeaseTest, IsOfOneKey) {
  const auto leases = service();
  const LeaseAnswer one = leases->try_take(key), other = leases->try_take(key_of("other"));
  EXPECT_TRUE(one.held && other.held);
}

TEST_F(RedisLeaseTest, ComesFromTheBackEndUnderItsPrefix) {
  const LeaseAnswer answer = backend("?prefix=team7/")->leases()->try_take(key);
  ASSERT_TRUE(answer.held);
  EXPECT_EQ(server->command({"EXISTS", "team7/lease:" + key.name}), "1");
  const int left_ms = std::stoi(server->command({"PTTL", "team7/lease:" + key.name}));
  EXPECT_TRUE(left_ms > 5000 && left_ms <= 15000) << left_ms;
}

TEST_F(RedisLeaseTest, IsGivenBackAtItsEnd) {
  LeaseAnswer first = service()->try_take(key);
  ASSERT_TRUE(first.held);
  first.held.reset();
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "0");
  EXPECT_TRUE(service()->try_take(key).held);
}

TEST_F(RedisLeaseTest, IsKeptForWorkThatTakesLongerThanItsTime) {
  const LeaseAnswer mine = service(kShortMs)->try_take(key);
  ASSERT_TRUE(mine.held);
  const std::string token = value();
  const auto others = service(kShortMs);
  for (int i = 0; i < 15; ++i) {
    pause(kShortMs / 6);
    EXPECT_FALSE(others->try_take(key).held) << i;
  }
  EXPECT_EQ(value(), token);
}

TEST_F(RedisLeaseTest, IsTakenOverAfterTheDeathOfItsHolder) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto child = testing::ChildProcess::run([&] {
    const LeaseAnswer answer = service(kShortMs)->try_take(key);
    const char told = answer.held ? 'y' : 'n';
    (void)!::write(ends[1], &told, 1);
    pause(60000);
    return 0;
  });
  char told = '?';
  ASSERT_EQ(::read(ends[0], &told, 1), 1);
  ASSERT_EQ(told, 'y');
  const auto others = service(kShortMs);
  pause(2 * kShortMs);
  const LeaseAnswer early = others->try_take(key);
  EXPECT_FALSE(early.held) << "it is alive";
  EXPECT_NE(early.holder.find("pid " + std::to_string(child.pid())), std::string::npos);
  child.signal(SIGKILL);
  child.wait();
  const Stopwatch watch;
  LeaseAnswer late;
  while (!late.held && watch.ms() < 10 * kShortMs) {
    late = others->try_take(key);
    pause(20);
  }
  EXPECT_TRUE(late.held);
  for (const int end : ends) ::close(end);
}

TEST_F(RedisLeaseTest, NeitherExtendsNorGivesBackThatOfAnother) {
  LeaseAnswer mine = service(kShortMs)->try_take(key);
  ASSERT_TRUE(mine.held);
  server->command({"SET", lease_name(), "another's", "PX", "60000"});
  pause(kShortMs);  // two renewals
  EXPECT_GT(std::stoi(server->command({"PTTL", lease_name()})), 10000);
  EXPECT_EQ(value(), "another's");
  mine.held.reset();
  EXPECT_EQ(value(), "another's");
}

TEST_F(RedisLeaseTest, GivesBackOnlyItsOwnBeforeItKnowsOfItsLoss) {
  LeaseAnswer mine = service()->try_take(key);
  ASSERT_TRUE(mine.held);
  server->command({"SET", lease_name(), "another's"});
  mine.held.reset();
  EXPECT_EQ(value(), "another's");
}

TEST_F(RedisLeaseTest, IsNotTakenAgainByARenewalAfterItHasRunOut) {
  const LeaseAnswer mine = service(kShortMs)->try_take(key);
  ASSERT_TRUE(mine.held);
  server->flush();
  pause(kShortMs);
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "0");
}

TEST_F(RedisLeaseTest, OutlivesItsService) {
  auto leases = service(kShortMs);
  LeaseAnswer mine = leases->try_take(key);
  leases.reset();
  pause(2 * kShortMs);
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "1");
  mine.held.reset();
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "0");
}

TEST_F(RedisLeaseTest, SaysWhyNobodyCouldBeAsked) {
  const auto leases = service();
  server->stop();
  const LeaseAnswer answer = leases->try_take(key);
  EXPECT_FALSE(answer.held);
  EXPECT_EQ(answer.holder, "");
  EXPECT_NE(answer.failure.find("Connection refused"), std::string::npos) << answer.failure;
  ASSERT_TRUE(server->start());
  EXPECT_TRUE(leases->try_take(key).held);
}

TEST_F(RedisLeaseTest, SaysThatTheServerGivesNone) {
  server->command({"REPLICAOF", "127.0.0.1", "1"});
  const LeaseAnswer answer = service()->try_take(key);
  EXPECT_FALSE(answer.held);
  EXPECT_NE(answer.failure.find("READONLY"), std::string::npos) << answer.failure;
}

TEST_F(RedisLeaseTest, EndsByTheDeadlineThoughTheServerHangs) {
  testing::FaultProxy proxy(server->port());
  RedisLeaseSettings hurried = settings(300);  // a renewal is always on its way
  hurried.deadline_ms = 200;
  auto leases = std::make_shared<RedisLeases>(client(proxy.port()), hurried);
  LeaseAnswer mine = leases->try_take(key);
  proxy.hang();
  pause(150);
  const Stopwatch watch;
  const LeaseAnswer other = leases->try_take(key);
  EXPECT_NE(other.failure, "");
  mine.held.reset();
  leases.reset();
  EXPECT_LT(watch.ms(), 3 * hurried.deadline_ms + kSlackMs);
}

TEST_F(RedisLeaseTest, EndsThoughTheServerIsGone) {
  LeaseAnswer mine = service()->try_take(key);
  ASSERT_TRUE(mine.held);
  server->stop();
  const Stopwatch watch;
  mine.held.reset();
  EXPECT_LT(watch.ms(), kSlackMs);
}

TEST_F(RedisLeaseTest, StaysWithTheParentOfAFork) {
  auto leases = service(kShortMs);
  LeaseAnswer mine = leases->try_take(key);
  ASSERT_TRUE(mine.held);
  auto child = testing::ChildProcess::run([&] {
    ::alarm(20);
    mine.held.reset();
    leases.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "1");
  pause(2 * kShortMs);
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "1") << "and is still renewed";
}

TEST_F(RedisLeaseTest, IsTakenAndKeptByTheChildOfAForkToo) {
  CHORD_SKIP_UNDER_THREAD_SANITIZER("it starts no threads in a child of threads");
  const auto leases = service(kShortMs);
  ASSERT_TRUE(leases->try_take(key_of("other")).held) << "so that the parent has its thread";
  auto child = testing::ChildProcess::run([&] {
    ::alarm(20);
    const LeaseAnswer own = leases->try_take(key);
    pause(2 * kShortMs);
    return own.held && server->command({"EXISTS", lease_name()}) == "1" ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(server->command({"EXISTS", lease_name()}), "0") << "given back";
}

}  // namespace
}  // namespace chord::cache
