// Many processes on one folder: one compile per key, nothing partial, and owners that die or stop.
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/cache/helper.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizer.h"

namespace chord::cache {
namespace {

using testing::Barrier;
using testing::ChildProcess;

constexpr const char* kTooMany = "a sanitizer starts so many processes too slowly";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

template <class Condition>
bool comes_true(Condition condition, int limit_ms = 10000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class CacheProcesses : public CacheTest {
 protected:
  void SetUp() override {
    CHORD_SKIP_UNDER_THREAD_SANITIZER("it looks into one process, and here each has one thread");
  }
  HelperJob job() const {
    return {.root = root(), .compile_log = compile_log(), .message_log = message_log()};
  }
  std::string compile_log() const { return folder / "compiles"; }
  std::string message_log() const { return folder / "messages"; }
  bool is_compiling() const { return !lines_of(compile_log()).empty(); }

  // All started at one barrier; true if every one got the right cubins.
  bool run_together(int processes, HelperJob job, int stride = 0) {
    Barrier barrier;
    job.barrier_fd = barrier.wait_fd();
    std::vector<ChildProcess> children;
    for (int i = 0; i < processes; ++i) {
      job.first_key = i * stride;
      children.push_back(ChildProcess::start_self(job.arguments()));
    }
    barrier.open();
    bool all_right = true;
    for (ChildProcess& child : children) {
      const int code = child.wait();
      EXPECT_EQ(code, 0);
      all_right = all_right && code == 0;
    }
    return all_right;
  }

  std::vector<std::string> temporaries() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
      if (entry.path().filename().string().starts_with(Layout::kTemporaryPrefix))
        found.push_back(entry.path());
    return found;
  }
};

class ProcessCount : public CacheProcesses, public ::testing::WithParamInterface<int> {};

TEST_P(ProcessCount, WantOneKeyAndCompileOnce) {
  if (GetParam() > 16) CHORD_SKIP_UNDER_SANITIZERS(kTooMany);
  HelperJob one = job();
  one.compile_ms = 50;
  EXPECT_TRUE(run_together(GetParam(), one));
  EXPECT_EQ(lines_of(compile_log()).size(), 1u);
  EXPECT_TRUE(temporaries().empty());
  EXPECT_TRUE(std::filesystem::is_empty(layout().locks()));
}

TEST_P(ProcessCount, NeverSeeAPartialEntryOfASlowWriter) {
  if (GetParam() > 16) CHORD_SKIP_UNDER_SANITIZERS(kTooMany);
  HelperJob slow = job();
  slow.slow_write_ms = 50;
  EXPECT_TRUE(run_together(GetParam(), slow));
  EXPECT_EQ(lines_of(compile_log()).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Cache, ProcessCount, ::testing::Values(8, 16, 64));

TEST_F(CacheProcesses, SixteenMakeAMissingRootAtOnce) {
  HelperJob deep = job();
  deep.root = folder / "a/b/c/cache";
  EXPECT_TRUE(run_together(16, deep));
  EXPECT_TRUE(lines_of(message_log()).empty() ||
              lines_of(message_log()).front().find("waiting") != std::string::npos);
}

TEST_F(CacheProcesses, SixteenMakeAHundredKeysOnceEach) {
  HelperJob many = job();
  many.keys = 100;
  many.compile_ms = 2;
  EXPECT_TRUE(run_together(16, many, 6));
  EXPECT_EQ(lines_of(compile_log()).size(), 100u);
  const auto cache = open();
  const VerifyReport report = cache->verify();
  EXPECT_EQ(report.entries, 100u);
  EXPECT_TRUE(report.damaged.empty());
  const PruneReport usage = cache->prune();
  EXPECT_EQ(usage.usage.files, report.entries);
  EXPECT_EQ(usage.usage.bytes, report.bytes);
}

TEST_F(CacheProcesses, AStoppedOwnerIsNamedAndWaitedForWithinTheLimit) {
  HelperJob owner_job = job();
  owner_job.compile_ms = 60000;
  ChildProcess owner = ChildProcess::start_self(owner_job.arguments());
  ASSERT_TRUE(comes_true([&] { return is_compiling(); }));
  owner.signal(SIGSTOP);
  HelperJob waiter_job = job();
  waiter_job.wait_ms = 300;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ChildProcess::start_self(waiter_job.arguments()).wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(lines_of(compile_log()).size(), 2u);
  const std::string owner_pid = "pid " + std::to_string(owner.pid()) + " ";
  const std::vector<std::string> messages = lines_of(message_log());
  ASSERT_EQ(messages.size(), 2u);
  for (const std::string& message : messages)
    EXPECT_NE(message.find(owner_pid), std::string::npos) << message;
}

TEST_F(CacheProcesses, AStoppedOwnerThatGoesOnDoesNoHarm) {
  HelperJob owner_job = job();
  owner_job.compile_ms = 200;
  ChildProcess owner = ChildProcess::start_self(owner_job.arguments());
  ASSERT_TRUE(comes_true([&] { return is_compiling(); }));
  owner.signal(SIGSTOP);
  HelperJob waiter_job = job();
  waiter_job.wait_ms = 50;
  EXPECT_EQ(ChildProcess::start_self(waiter_job.arguments()).wait(), 0);
  owner.signal(SIGCONT);
  EXPECT_EQ(owner.wait(), 0);
  EXPECT_TRUE(open()->verify().damaged.empty());
}

TEST_F(CacheProcesses, AKilledOwnersWaiterTakesOverAtOnce) {
  HelperJob owner_job = job();
  owner_job.compile_ms = 60000;
  ChildProcess owner = ChildProcess::start_self(owner_job.arguments());
  ASSERT_TRUE(comes_true([&] { return is_compiling(); }));
  ChildProcess waiter = ChildProcess::start_self(job().arguments());
  ASSERT_TRUE(comes_true([&] { return !lines_of(message_log()).empty(); }));
  owner.signal(SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// What a compile starts and leaves behind when its process is killed: a fork, or a program.
enum class Offspring { fork, program };

class ChildOfAnOwner : public CacheProcesses, public ::testing::WithParamInterface<Offspring> {
 protected:
  static pid_t give_birth() {
    pid_t child = -1;
    char name[] = "sleep", time[] = "60";
    char* const arguments[] = {name, time, nullptr};
    char* const environment[] = {nullptr};
    if (GetParam() == Offspring::program) {
      ::posix_spawn(&child, "/bin/sleep", nullptr, nullptr, arguments, environment);
    } else if ((child = ::fork()) == 0) {
      ::pause();
      ::_exit(0);
    }
    return child;
  }
};

TEST_P(ChildOfAnOwner, KeepsNoLockWhenTheOwnerIsKilled) {
  const CacheKey key = make_key("a");
  const base::SystemClock machine;
  base::SystemClock owners_clock;
  int pids[2];
  ASSERT_EQ(::pipe(pids), 0);
  ChildProcess owner = ChildProcess::run([&] {
    const auto cache = TieredCache::open(settings(), real, owners_clock, log.sink());
    (void)(*cache)->get_or_make(key, [&]() -> Result<Entry> {
      const pid_t child = give_birth();
      if (::write(pids[1], &child, sizeof child) == sizeof child) ::pause();
      return make_entry(key);
    });
    return 1;
  });
  pid_t child = -1;
  ASSERT_EQ(::read(pids[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  owner.signal(SIGKILL);
  EXPECT_EQ(owner.wait(), 128 + SIGKILL);
  CacheSettings patient = settings();
  patient.wait_ms = 20000;
  const std::int64_t start_ns = machine.steady_ns();
  const auto cache = TieredCache::open(patient, real, owners_clock, log.sink());
  ASSERT_TRUE((*cache)->get_or_make(key, maker(key)).ok());
  EXPECT_LT(machine.steady_ns() - start_ns, 10 * testing::FakeClock::kSecond);
  EXPECT_EQ((*cache)->counters().waits, 0u);
  EXPECT_EQ(::kill(child, SIGKILL), 0) << "it was gone: the test tests nothing";
  ::close(pids[0]);
  ::close(pids[1]);
}

INSTANTIATE_TEST_SUITE_P(Cache, ChildOfAnOwner,
                         ::testing::Values(Offspring::fork, Offspring::program),
                         [](const auto& info) {
                           return info.param == Offspring::fork ? "Fork" : "Program";
                         });

TEST_F(CacheProcesses, OwnersKilledAnywhereLeaveNothingThatOutlivesTheSweep) {
  HelperJob owner_job = job();
  owner_job.compile_ms = 5;
  owner_job.slow_write_ms = 5;
  owner_job.keys = 10000;  // more than a round makes: every round makes new ones
  std::mt19937 random(4);
  std::size_t most_left = 0;
  for (int round = 0; round < 40; ++round) {
    owner_job.first_key = 100 * round;
    const std::size_t compiles_before = lines_of(compile_log()).size();
    ChildProcess owner = ChildProcess::start_self(owner_job.arguments());
    ASSERT_TRUE(comes_true([&] { return lines_of(compile_log()).size() > compiles_before; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40000));
    owner.signal(SIGKILL);
    (void)owner.wait();
    most_left = std::max(most_left, temporaries().size());
  }
  EXPECT_GT(most_left, 0u) << "no owner was killed while it wrote: the test tests nothing";
  EXPECT_TRUE(open()->verify().damaged.empty());
  // The wall clock of these files is the machine's.
  base::SystemClock machine;
  clock.advance_s((machine.now_ns() - clock.now_ns()) / testing::FakeClock::kSecond + 3600);
  EXPECT_TRUE(open()->prune().ran);
  EXPECT_TRUE(temporaries().empty());
  EXPECT_TRUE(std::filesystem::is_empty(layout().locks()));
  EXPECT_EQ(ChildProcess::start_self(job().arguments()).wait(), 0);
}

}  // namespace
}  // namespace chord::cache
