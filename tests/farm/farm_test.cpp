// Nodes without a compiler, farms with one, and a real Redis between them. The compiler is a
// stand-in that counts; store, cache, signatures and streams are the real ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "cache/remote/redis_lease.h"
#include "cache/remote/remote_tier.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "src/farm/farm_client.h"
#include "src/farm/farm_names.h"
#include "src/farm/farm_server.h"
#include "src/farm/message.h"
#include "tests/support/child_process.h"
#include "tests/support/log_recorder.h"
#include "tests/support/redis_server.h"
#include "tests/support/temporary_folder.h"

namespace chord::farm {
namespace {

using testing::RedisServer;

class StandIn final : public cubin::CubinCompiler {
 public:
  explicit StandIn(std::string version) : version_(std::move(version)) {}

  Result<std::string> identity() override {
    if (version_.empty())
      return Error{ErrorCode::unavailable, "open NVRTC", "no library", "install one"};
    return version_;
  }
  Result<cubin::CompiledCubin> compile(const cubin::CompileRequest& request) override {
    ++compiles;
    if (on_compile) on_compile();
    if (request.source.find("#error") != std::string::npos)
      return Error{ErrorCode::compile_failed, request.name, "line 3: #error", ""};
    return cubin::CompiledCubin{"cubin of " + request.name, "", 1.5, version_, 168, 0, 0};
  }

  std::atomic<int> compiles{0};
  std::function<void()> on_compile;

 private:
  std::string version_;
};

cubin::Recipe recipe_of(int number) {
  cubin::Recipe recipe =
      *cubin::pack_recipe(Architecture::sm_90a, CodeSource::words, ScaleSource::row_major);
  recipe.label = "kernel " + std::to_string(number);
  recipe.fields.emplace_back("number", std::to_string(number));
  return recipe;
}

class FarmTest : public ::testing::Test {
 protected:
  // A machine: folder, cache on the shared Redis, store of cubins, and a compiler or none.
  struct Machine {
    std::unique_ptr<cache::TieredCache> cache;
    std::unique_ptr<cubin::CompileFarm> farm;
    std::unique_ptr<cubin::CubinStore> store;
  };

  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << RedisServer::kMissing;
    server = std::make_unique<RedisServer>();
    ASSERT_TRUE(server->is_running());
    remote.url = *cache::parse_remote_url(server->url());
    remote.deadline_ms = 2000;
  }

  Machine machine(const std::string& name, cubin::CubinCompiler& compiler, bool is_farm,
                  std::int64_t farm_deadline_ms = 10000) {
    cache::CacheSettings settings;
    settings.writable_dir = folder / name;
    cache::TrustedKeys trusted;
    trusted.add(farm_key.signer(), "farm");
    std::optional<cache::SigningKey> signing_key;
    if (is_farm) signing_key = farm_key;
    settings.signatures =
        cache::Signatures(SignaturePolicy::accept_local, trusted, std::move(signing_key));
    auto backend = cache::make_backend(remote);
    EXPECT_TRUE(backend.ok());
    settings.remote_tiers = {std::make_shared<cache::RemoteTier>(*backend, is_farm)};
    // Of a short life, so that a farm that was killed is not waited for as long as in earnest.
    if (is_farm)
      settings.leases = std::make_shared<cache::RedisLeases>(
          cache::open_redis(remote)->client, cache::RedisLeaseSettings{.ttl_ms = 1000});
    Machine made;
    auto opened = cache::TieredCache::open(settings, files, clock, log.sink());
    EXPECT_TRUE(opened.ok());
    made.cache = std::move(*opened);
    if (!is_farm) made.farm = make_farm_client(remote, name, farm_deadline_ms, clock).value();
    made.store = std::make_unique<cubin::CubinStore>(*made.cache, compiler, JitPolicy::allow,
                                                     log.sink(), made.farm.get());
    return made;
  }

  // A farm that serves on a thread until it is told to end.
  class Serving {
   public:
    Serving(FarmTest& test, const std::string& name, cubin::CubinCompiler& compiler, int jobs = 1,
            std::int64_t claim_ms = 30000)
        : machine_(test.machine(name, compiler, true)),
          server(*cache::open_redis(test.remote), *machine_.store, *machine_.cache,
                 {.label = name, .jobs = jobs, .claim_ms = claim_ms, .poll_ms = 50}, test.clock,
                 test.log.sink()),
          thread_([this](std::stop_token stop) {
            server.run([&] { return stop.stop_requested(); });
          }) {}

   private:
    Machine machine_;

   public:
    FarmServer server;

   private:
    std::jthread thread_;
  };

  void wait_for_a_farm() {
    const std::string alive = alive_name("chord:");
    for (int i = 0; i < 500 && server->command({"EXISTS", alive}) != "1"; ++i) ::usleep(10000);
    ASSERT_EQ(server->command({"EXISTS", alive}), "1");
  }

  std::unique_ptr<RedisServer> server;
  cache::RemoteSettings remote;
  const cache::SigningKey farm_key = cache::SigningKey::generate();
  testing::TemporaryFolder folder;
  base::PosixFileSystem files;
  base::SystemClock clock;
  testing::LogRecorder log;
  StandIn none{""};
  StandIn nvrtc{"NVRTC 13.0.88"};
};

TEST_F(FarmTest, ServesANodeWithoutACompiler) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  Machine node = machine("node", none, false);
  const auto entry = node.store->obtain(recipe_of(1));
  ASSERT_TRUE(entry.ok()) << entry.error().message();
  EXPECT_EQ((*entry)->compiler, "NVRTC 13.0.88");
  EXPECT_EQ((*entry)->signer, farm_key.signer());
  EXPECT_EQ(nvrtc.compiles, 1);
  // Kept: without farm and store the node still has it.
  server->stop();
  Machine later = machine("node", none, false);
  EXPECT_NE(later.store->find(recipe_of(1)), nullptr);
}

TEST_F(FarmTest, CompilesOnceForManyNodes) {
  nvrtc.on_compile = [this] { clock.sleep_ms(50); };
  Serving first(*this, "farm 1", nvrtc, 2), second(*this, "farm 2", nvrtc, 2);
  wait_for_a_farm();
  std::atomic<int> served{0};
  {
    std::vector<std::jthread> nodes;
    for (int i = 0; i < 8; ++i)
      nodes.emplace_back([&, i] {
        Machine node = machine("node " + std::to_string(i), none, false);
        for (int number = 0; number < 4; ++number)
          served += node.store->obtain(recipe_of((i + number) % 4)).ok() ? 1 : 0;
      });
  }
  EXPECT_EQ(served, 32);
  EXPECT_EQ(nvrtc.compiles, 4);
}

TEST_F(FarmTest, TellsTheNodeWhatTheCompilerSaid) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  cubin::Recipe broken = recipe_of(1);
  broken.source += "\n#error\n";
  const auto entry = machine("node", none, false).store->obtain(broken);
  ASSERT_FALSE(entry.ok());
  EXPECT_NE(entry.error().message().find("line 3"), std::string::npos) << entry.error().message();
}

TEST_F(FarmTest, WithoutAFarmTheNodeIsToldAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto entry = machine("node", none, false).store->obtain(recipe_of(1));
  ASSERT_FALSE(entry.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_NE(entry.error().message().find("chord-cache serve"), std::string::npos);
}

TEST_F(FarmTest, AnAnswerThatDoesNotComeIsWaitedForWithinTheDeadline) {
  (void)server->command({"SET", alive_name("chord:"), "a farm that has just died"});
  const auto start = std::chrono::steady_clock::now();
  const auto entry = machine("node", none, false, 200).store->obtain(recipe_of(1));
  ASSERT_FALSE(entry.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_NE(entry.error().message().find("a farm that has just died"), std::string::npos);
}

TEST_F(FarmTest, ANodeWithACompilerGoesOnWithoutTheFarm) {
  const auto entry = machine("node", nvrtc, false).store->obtain(recipe_of(1));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(nvrtc.compiles, 1);
  EXPECT_TRUE(log.has(LogLevel::warn, "nobody serves"));
}

TEST_F(FarmTest, AFarmWhoseKeyIsNotTrustedHelpsNobody) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  cache::CacheSettings settings;
  settings.writable_dir = folder / "node";
  settings.remote_tiers = {
      std::make_shared<cache::RemoteTier>(*cache::make_backend(remote), false)};
  auto cache = cache::TieredCache::open(settings, files, clock, log.sink()).value();
  auto client = make_farm_client(remote, "node", 5000, clock).value();
  cubin::CubinStore store(*cache, none, JitPolicy::allow, log.sink(), client.get());
  const auto entry = store.obtain(recipe_of(1));
  ASSERT_FALSE(entry.ok());
  EXPECT_NE(entry.error().message().find("not believed"), std::string::npos);
}

// A process that takes a request and dies while it compiles: the claim runs out, another one takes
// it over.
TEST_F(FarmTest, WhatADeadFarmHadTakenAnotherOneMakes) {
  testing::ChildProcess dying = testing::ChildProcess::run([&] {
    nvrtc.on_compile = [] { ::kill(::getpid(), SIGKILL); };
    Machine own = machine("dying", nvrtc, true);
    FarmServer farm(*cache::open_redis(remote), *own.store, *own.cache,
                    {.label = "dying", .claim_ms = 300, .poll_ms = 50}, clock, log.sink());
    farm.run([] { return false; });
    return 0;
  });
  wait_for_a_farm();
  std::jthread node([&] {
    Machine waiting = machine("node", none, false, 30000);
    const auto entry = waiting.store->obtain(recipe_of(1));
    EXPECT_TRUE(entry.ok()) << entry.error().message();
  });
  EXPECT_EQ(dying.wait(), 128 + SIGKILL);
  Serving other(*this, "other", nvrtc, 1, 300);
  node.join();
  EXPECT_EQ(nvrtc.compiles, 1);
  EXPECT_EQ(other.server.counters().claimed, 1u);
}

TEST_F(FarmTest, ALongCompileIsNotClaimedByAnother) {
  nvrtc.on_compile = [this] { clock.sleep_ms(1500); };
  Serving first(*this, "first", nvrtc, 1, 300), second(*this, "second", nvrtc, 1, 300);
  wait_for_a_farm();
  EXPECT_TRUE(machine("node", none, false).store->obtain(recipe_of(1)).ok());
  EXPECT_EQ(first.server.counters().claimed + second.server.counters().claimed, 0u);
}

TEST_F(FarmTest, ARequestThatKillsFarmsIsGivenUp) {
  for (int i = 0; i < 3; ++i) {
    (void)testing::ChildProcess::run([&] {
      nvrtc.on_compile = [] { ::kill(::getpid(), SIGKILL); };
      Machine own = machine("dying", nvrtc, true);
      FarmServer farm(*cache::open_redis(remote), *own.store, *own.cache,
                      {.label = "dying", .claim_ms = 100, .poll_ms = 20}, clock, log.sink());
      if (i == 0)
        (void)cache::open_redis(remote)->client->run(
            {"XADD", stream_name("chord:"), "*", "recipe", encode(recipe_of(1)), "reply", "r",
             "asked_by", "a test"},
            2000);
      farm.run([] { return false; });
      return 0;
    }).wait();
  }
  Serving last(*this, "last", nvrtc, 1, 100);
  for (int i = 0; i < 500 && last.server.counters().given_up == 0; ++i) ::usleep(10000);
  EXPECT_EQ(last.server.counters().given_up, 1u);
  EXPECT_EQ(nvrtc.compiles, 0);
}

TEST_F(FarmTest, ARequestOfGarbageIsAnsweredAndTheFarmGoesOn) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  (void)server->command(
      {"XADD", stream_name("chord:"), "*", "recipe", "garbage", "reply", "r", "asked_by", "x"});
  (void)server->command({"XADD", stream_name("chord:"), "*", "what", "ever"});
  EXPECT_TRUE(machine("node", none, false).store->obtain(recipe_of(1)).ok());
}

TEST_F(FarmTest, SignsOnlyWhatIsMadeOfItsOwnDeviceText) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  Machine node = machine("node", none, false);
  const auto refused_with = [&](auto change) {
    cubin::Recipe changed = recipe_of(1);
    std::string text;
    change(changed, text);
    const auto entry = machine("node", none, false).store->obtain(changed);
    return entry.ok() ? std::string("made") : entry.error().message();
  };
  const std::string other_header = refused_with([](cubin::Recipe& recipe, std::string& text) {
    text = std::string(recipe.files[0].text) + " ";
    recipe.files[0].text = text;
  });
  EXPECT_NE(other_header.find("another version"), std::string::npos) << other_header;
  for (const char* line : {"#include \"/etc/passwd\"", "#include <cuda.h>", "# include X",
                           "#inc\\\nlude \"a\"", "%:include \"a\""}) {
    const std::string refused = refused_with([&](cubin::Recipe& recipe, std::string&) {
      recipe.source += std::string("\n") + line + "\n";
    });
    EXPECT_NE(refused, "made") << line;
  }
  EXPECT_EQ(nvrtc.compiles, 0);
}

TEST_F(FarmTest, AStoreWithoutStreamsIsRefusedByName) {
  cache::RemoteSettings http = remote;
  http.url = *cache::parse_remote_url("http://127.0.0.1:1/cache");
  const auto client = make_farm_client(http, "node", 100, clock);
  ASSERT_FALSE(client.ok());
  EXPECT_NE(client.error().message().find("redis://"), std::string::npos);
}

TEST_F(FarmTest, ComesBackWhenTheStoreDoes) {
  Serving farm(*this, "farm", nvrtc);
  wait_for_a_farm();
  server->stop();
  ::usleep(200000);
  ASSERT_TRUE(server->start());
  wait_for_a_farm();
  EXPECT_TRUE(machine("node", none, false).store->obtain(recipe_of(1)).ok());
}

}  // namespace
}  // namespace chord::farm
