// The recipes of cache/README.md, run as they stand there: real tools, a real Redis, a real nginx.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "tests/support/child_process.h"
#include "tests/support/nginx_server.h"
#include "tests/support/redis_server.h"
#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

// By the word behind ```sh.
std::map<std::string, std::string> recipes() {
  std::map<std::string, std::string> all;
  std::istringstream page(read_file(std::string(CHORD_SOURCE_DIR) + "/cache/README.md"));
  std::string name;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```sh "))
      name = line.substr(6);
    else if (line.starts_with("```"))
      name.clear();
    else if (!name.empty())
      all[name] += line + "\n";
  }
  return all;
}

// A few kernels, compiled once for all tests of this file.
constexpr const char* kModel = "--model kimi-k2.5 --ep 8 --role decode --arch sm_90a --rows 8:8";

class CacheRecipes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    seed = std::make_unique<ScratchFolder>();
    if (!can_compile()) return;
    const Outcome made = run_tool(
        "chord-prewarm", words(std::string(kModel) + " --json --cache-dir " + seed->path("chord")));
    EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  }
  static void TearDownTestSuite() { seed.reset(); }

  void SetUp() override {
#if !CHORD_HAS_REMOTE || !CHORD_HAS_BUNDLES
    GTEST_SKIP() << "this build is without remote back-ends or bundles";
#endif
    if (!can_compile()) GTEST_SKIP() << "no NVRTC on this machine";
    for (const char* place : {"IMAGE", "SECRETS", "ETC", "VOLUME", "LOCAL", "USB"}) {
      environment[place] = scratch.path(place);
      std::filesystem::create_directory(scratch.path(place));
    }
    environment["MODEL"] = kModel;
    environment["PATH"] = std::string(CHORD_BINARY_DIR) + "/bin:/usr/bin:/bin";
    for (const char* kept : {"CHORD_NVRTC_LIBRARY", "TMPDIR"})
      if (const char* value = ::getenv(kept)) environment[kept] = value;
    environment["HOME"] = scratch.path("home");
    std::filesystem::create_directory(scratch.path("home"));
  }

  // What a prewarm would compile is there already.
  void seed_folder(const std::string& place) {
    std::filesystem::copy(seed->path("chord"), scratch.path(place),
                          std::filesystem::copy_options::recursive);
    // The pins are the recipe's to make.
    std::filesystem::remove_all(scratch.path(place) + "/pins");
  }

  Outcome run(const std::string& recipe, const Environment& more = {}) {
    const auto all = recipes();
    const auto found = all.find(recipe);
    EXPECT_NE(found, all.end()) << "no block '" << recipe << "' in cache/README.md";
    if (found == all.end()) return {};
    used.insert(recipe);
    Environment complete = environment;
    for (const auto& [name, value] : more) complete[name] = value;
    return run_program("/bin/bash", {"-euo", "pipefail", "-c", found->second}, complete);
  }
  void expect_done(const std::string& recipe, const Environment& more = {}) {
    const Outcome outcome = run(recipe, more);
    EXPECT_EQ(outcome.exit_code, 0) << recipe << "\n" << outcome.out << outcome.err;
  }

  static std::unique_ptr<ScratchFolder> seed;
  static std::set<std::string> used;
  ScratchFolder scratch;
  Environment environment;
};

std::unique_ptr<ScratchFolder> CacheRecipes::seed;
std::set<std::string> CacheRecipes::used;

TEST_F(CacheRecipes, ImageBuild) {
  seed_folder("IMAGE/chord");
  expect_done("image");
  expect_done("image-node");
  // Without the layer the strict node is told what is missing.
  std::filesystem::rename(scratch.path("IMAGE/chord"), scratch.path("IMAGE/moved"));
  const Outcome missing = run("image-node");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.out.find("missing"), std::string::npos) << missing.out;
}

TEST_F(CacheRecipes, SharedVolume) {
  expect_done("keys");
  seed_folder("VOLUME/chord");
  expect_done("volume");
  expect_done("volume-node");
  // Nothing was compiled or copied on the node, and a node that trusts nobody has nothing.
  std::ofstream(scratch.path("ETC/chord.trusted"), std::ios::trunc) << "# nobody\n";
  EXPECT_EQ(run("volume-node").exit_code, 3);
}

TEST_F(CacheRecipes, RedisFleetAndFarm) {
  if (!testing::RedisServer::available()) GTEST_SKIP() << testing::RedisServer::kMissing;
  testing::RedisServer server({.password = "s3cret-of-the-fleet"});
  ASSERT_TRUE(server.is_running());
  environment["REDIS"] = server.url();
  write_file(scratch.path("SECRETS/redis.password"), "s3cret-of-the-fleet\n");
  expect_done("keys");
  seed_folder("LOCAL/chord");
  expect_done("redis");
  expect_done("redis-node");
  EXPECT_TRUE(std::filesystem::exists(scratch.path("LOCAL/chord/pins")));

  // A farm, and a node without a compiler that wants a kernel nobody has.
  used.insert("farm");  // run by a child, whose memory is its own
  testing::ChildProcess farm = testing::ChildProcess::run([&] {
    ::setpgid(0, 0);
    return run("farm").exit_code;
  });
  const Environment node{{"CHORD_REMOTE", server.url()},
                         {"CHORD_REMOTE_PASSWORD_FILE", scratch.path("SECRETS/redis.password")},
                         {"CHORD_TRUSTED_KEYS", scratch.path("ETC/chord.trusted")},
                         {"CHORD_CACHE_DIR", scratch.path("LOCAL/bare")},
                         {"CHORD_COMPILE", "farm"},
                         {"CHORD_NVRTC_LIBRARY", "/no/such/libnvrtc.so"}};
  Outcome made;
  for (int i = 0; i < 100; ++i) {
    made = run_tool("chord-prewarm",
                    words("--model kimi-k2.5 --ep 8 --role decode --rows 640:640 --json"), node);
    if (made.exit_code == 0) break;
    ::usleep(100000);
  }
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  ::kill(-farm.pid(), SIGTERM);
  (void)farm.wait();
}

TEST_F(CacheRecipes, HttpStore) {
  if (const std::string why = testing::NginxServer::why_not(); !why.empty()) GTEST_SKIP() << why;
  testing::NginxServer server({.token = "t0ken"});
  ASSERT_TRUE(server.is_up()) << server.error_log();
  environment["HTTP"] = "http://127.0.0.1:" + std::to_string(server.port()) + "/chord";
  write_file(scratch.path("SECRETS/http.token"), "t0ken\n");
  expect_done("keys");
  seed_folder("LOCAL/chord");
  expect_done("http");
  const Environment node{{"CHORD_REMOTE", environment["HTTP"]},
                         {"CHORD_REMOTE_TOKEN_FILE", scratch.path("SECRETS/http.token")},
                         {"CHORD_TRUSTED_KEYS", scratch.path("ETC/chord.trusted")},
                         {"CHORD_CACHE_DIR", scratch.path("LOCAL/node")}};
  const Outcome check = run_tool("chord-prewarm", words(std::string(kModel) + " --check"), node);
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST_F(CacheRecipes, AirGappedNode) {
  expect_done("keys");
  seed_folder("LOCAL/chord");
  expect_done("export");
  expect_done("import", {{"CHORD_NVRTC_LIBRARY", "/no/such/libnvrtc.so"}});
  // A bundle that was touched is refused whole.
  const std::string bundle = scratch.path("USB/kimi.chordpack");
  std::string bytes = read_file(bundle);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(bundle, bytes);
  std::filesystem::remove_all(scratch.path("LOCAL/node"));
  EXPECT_EQ(run("import").exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("LOCAL/node/v2")));
}

TEST_F(CacheRecipes, LookingAndTidying) {
  seed_folder("LOCAL/chord");
  expect_done("care");
}

TEST_F(CacheRecipes, EveryBlockIsRun) {
  for (const auto& [name, text] : recipes())
    EXPECT_TRUE(used.contains(name)) << name << " is in cache/README.md and no test runs it";
}

}  // namespace
}  // namespace chord::tools_test
