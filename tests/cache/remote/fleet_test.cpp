// A fleet on one Redis: many processes on several cache folders, all cold, want the same keys.
// Every key is made once, also when makers are killed in the middle.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <vector>

#include "cache/remote/redis_lease.h"
#include "cache/remote/remote_tier.h"
#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/cache/remote/redis_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

using testing::Barrier;
using testing::ChildProcess;

constexpr int kProcesses = 32;
constexpr int kFolders = 4;
constexpr int kKeys = 6;
constexpr int kRounds = 20;

void append_line(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(90);
  ::close(fd);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class Fleet : public RedisTest {
 protected:
  struct Node {
    std::string root;
    int first_key = 0;
    bool dies_while_it_makes = false;
  };

  CacheSettings settings_of_node(const std::string& root) {
    CacheSettings settings;
    settings.writable_dir = root;
    settings.wait_ms = 60000;
    settings.signatures = signatures_of(signing_key);
    const auto client = this->client();
    settings.remote_tiers = {
        std::make_shared<RemoteTier>(std::make_shared<RedisBackend>(client, RedisPlace{}), true)};
    settings.leases = std::make_shared<RedisLeases>(
        client, RedisLeaseSettings{.deadline_ms = 2000, .ttl_ms = 1000});
    return settings;
  }

  // What a rank of the job does. The exit code says whether it got every key right.
  int run(const Node& node) {
    base::PosixFileSystem files;
    base::SystemClock clock;
    auto cache = TieredCache::open(settings_of_node(node.root), files, clock, {});
    if (!cache) return 2;
    for (int i = 0; i < kKeys; ++i) {
      const int number = (node.first_key + i) % kKeys;
      const CacheKey key = make_key("kernel " + std::to_string(number));
      const auto entry = (*cache)->get_or_make(key, [&]() -> Result<Entry> {
        if (node.dies_while_it_makes) {
          append_line(killed(), std::to_string(number));
          ::kill(::getpid(), SIGKILL);
        }
        clock.sleep_ms(20);
        append_line(compiles(), std::to_string(number));
        return make_entry(key, 20000);
      });
      if (!entry || (*entry)->cubin != make_entry(key, 20000).cubin) return 3;
    }
    return (*cache)->counters().bad_entries == 0 ? 0 : 4;
  }

  // How many of the processes died as they were told to.
  int run_round(int round, bool with_deaths) {
    Barrier barrier;
    std::vector<ChildProcess> children;
    for (int i = 0; i < kProcesses; ++i) {
      const Node node{
          folder / ("round" + std::to_string(round) + "." + std::to_string(i % kFolders)),
          i % kKeys, with_deaths && i % 8 == round % 8};
      children.push_back(ChildProcess::run([&, node] {
        barrier.open();  // this process's copy: the parent's alone keeps the others waiting
        Barrier::wait(barrier.wait_fd());
        return run(node);
      }));
    }
    barrier.open();
    int deaths = 0;
    for (ChildProcess& child : children) {
      const int code = child.wait();
      if (code == 128 + SIGKILL)
        ++deaths;
      else
        EXPECT_EQ(code, 0);
    }
    return deaths;
  }

  std::string compiles() const { return folder / "compiles"; }
  std::string killed() const { return folder / "killed"; }

  const SigningKey signing_key = SigningKey::generate();
  testing::TemporaryFolder folder;
};

TEST_F(Fleet, MakesEveryKeyOnceInTwentyColdRoundsAlsoWhenMakersAreKilled) {
  int deaths = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    server->flush();
    ::unlink(compiles().c_str());
    deaths += run_round(round, round % 4 == 3);
    std::vector<std::string> made = lines_of(compiles());
    EXPECT_EQ(made.size(), static_cast<std::size_t>(kKeys));
    EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), made.size());
  }
  EXPECT_GT(deaths, 0) << "no maker was killed: half of the test tests nothing";
  EXPECT_EQ(static_cast<std::size_t>(deaths), lines_of(killed()).size());
}

TEST_F(Fleet, GoesOnWithoutAStoreThatDies) {
  base::PosixFileSystem files;
  base::SystemClock clock;
  testing::LogRecorder log;
  auto cache = TieredCache::open(settings_of_node(folder / "alone"), files, clock, log.sink());
  ASSERT_TRUE(cache.ok());
  const CacheKey first = make_key("before"), second = make_key("after");
  ASSERT_TRUE((*cache)->get_or_make(first, [&] { return make_entry(first); }).ok());
  server->stop();
  const Stopwatch watch;
  const auto entry = (*cache)->get_or_make(second, [&] { return make_entry(second); });
  ASSERT_TRUE(entry.ok());
  EXPECT_LT(watch.ms(), 2000 + kSlackMs);
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ((*cache)->counters().remotes.at(0).breaker, BreakerState::open);
}

}  // namespace
}  // namespace chord::cache
