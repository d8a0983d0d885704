// The commands of chord-cache that make keys, move caches between machines and answer why; and the
// flag that names a store. Recipes of whole fleets are in cache_recipes_test.cpp.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

using cache::make_key;

class CacheFleet : public ::testing::Test {
 protected:
#if !CHORD_HAS_REMOTE || !CHORD_HAS_BUNDLES
  void SetUp() override { GTEST_SKIP() << "this build is without remote back-ends or bundles"; }
#endif
  Outcome run(const std::string& arguments, const Environment& more = {}) {
    Environment environment{{"CHORD_CACHE_DIR", scratch.path("cache")}};
    for (const auto& [name, value] : more) environment[name] = value;
    return run_tool("chord-cache", words(arguments), environment);
  }
  std::string keygen(const std::string& name) {
    const Outcome made = run("keygen --json --out " + scratch.path(name));
    EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
    return made.json()["public_key"];
  }
  // Three entries, and the manifest that lists them.
  void fill() {
    base::PosixFileSystem files;
    base::SystemClock clock;
    cache::CacheSettings settings;
    settings.writable_dir = scratch.path("cache");
    auto opened = cache::TieredCache::open(settings, files, clock, {});
    ASSERT_TRUE(opened.ok());
    cache::Manifest manifest{.label = "three kernels", .compiler = "NVRTC 13.0.88"};
    for (const char* source : {"a", "b", "c"}) {
      const CacheKey key = make_key(source);
      ASSERT_TRUE((*opened)->get_or_make(key, [&] { return cache::make_entry(key); }).ok());
      manifest.keys.push_back({key.name, source, "sm_90a", "", 1000});
    }
    manifest.coverage = {3, 3, "1:8"};
    ASSERT_TRUE((*opened)->write_manifest(manifest, scratch.path("three.json")).ok());
  }
  std::string trusted() { return scratch.path("build.key.pub"); }

  ScratchFolder scratch;
};

TEST_F(CacheFleet, KeygenMakesAPairThatOnlyItsOwnerReads) {
  const std::string key = keygen("build.key");
  EXPECT_EQ(key.rfind("ed25519:", 0), 0u);
  struct stat raw {};
  ASSERT_EQ(::stat(scratch.path("build.key").c_str(), &raw), 0);
  EXPECT_EQ(raw.st_mode & 0777, 0600u);
  EXPECT_EQ(read_file(trusted()), key + "\n");
  EXPECT_EQ(read_file(scratch.path("build.key")).find(key.substr(8)), std::string::npos);
}

TEST_F(CacheFleet, KeygenNeverOverwritesAKey) {
  keygen("build.key");
  const std::string before = read_file(scratch.path("build.key"));
  EXPECT_EQ(run("keygen --out " + scratch.path("build.key")).exit_code, 2);
  EXPECT_EQ(read_file(scratch.path("build.key")), before);
  write_file(scratch.path("other.pub"), "somebody's file");
  EXPECT_EQ(run("keygen --out " + scratch.path("other")).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("other"))) << "half a pair";
}

TEST_F(CacheFleet, ABundleGoesFromOneFolderToAnother) {
  fill();
  keygen("build.key");
  const std::string bundle = scratch.path("three.chordpack");
  const Outcome exported = run("export --json --manifest " + scratch.path("three.json") + " -o " +
                               bundle + " --signing-key " + scratch.path("build.key"));
  ASSERT_EQ(exported.exit_code, 0) << exported.out << exported.err;
  EXPECT_EQ(exported.json()["entries"], 3);
  const Environment other{{"CHORD_CACHE_DIR", scratch.path("other")},
                          {"CHORD_TRUSTED_KEYS", trusted()}};
  const Outcome checked = run("import --check --json " + bundle, other);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_EQ(checked.json()["imported"], 0);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("other")));
  const Outcome imported = run("import --json " + bundle, other);
  EXPECT_EQ(imported.exit_code, 0) << imported.out << imported.err;
  EXPECT_EQ(imported.json()["imported"], 3);
  EXPECT_EQ(run("import --json " + bundle, other).json()["skipped"], 3);
  for (const char* source : {"a", "b", "c"})
    EXPECT_EQ(run("why " + make_key(source).name, other).exit_code, 0);
}

TEST_F(CacheFleet, APinCanBeExportedByItsLabel) {
  fill();
  keygen("build.key");
  const Environment key{{"CHORD_SIGNING_KEY", scratch.path("build.key")}};
  const std::vector<std::string> arguments{"export", "--manifest", "three kernels", "-o",
                                           scratch.path("b.chordpack")};
  Environment environment = key;
  environment["CHORD_CACHE_DIR"] = scratch.path("cache");
  EXPECT_EQ(run_tool("chord-cache", arguments, environment).exit_code, 0);
  const Outcome unknown = run("export --manifest four -o " + scratch.path("c.chordpack"), key);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("three kernels"), std::string::npos) << unknown.err;
}

TEST_F(CacheFleet, AStrangersBundleIsRefusedByName) {
  fill();
  const std::string stranger = keygen("stranger.key");
  keygen("build.key");
  const std::string bundle = scratch.path("three.chordpack");
  ASSERT_EQ(run("export --manifest " + scratch.path("three.json") + " -o " + bundle +
                " --signing-key " + scratch.path("stranger.key"))
                .exit_code,
            0);
  const Environment other{{"CHORD_CACHE_DIR", scratch.path("other")},
                          {"CHORD_TRUSTED_KEYS", trusted()}};
  const Outcome refused = run("import " + bundle, other);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find(stranger), std::string::npos) << refused.err;
  EXPECT_EQ(run("import " + bundle, {{"CHORD_CACHE_DIR", scratch.path("other")}}).exit_code, 2)
      << "without any trusted key";
  EXPECT_FALSE(std::filesystem::exists(scratch.path("other")));
}

TEST_F(CacheFleet, ImportSaysWhatOfADeploymentItCoversAndWhatDiffers) {
  fill();
  keygen("build.key");
  const std::string bundle = scratch.path("three.chordpack");
  ASSERT_EQ(run("export --manifest " + scratch.path("three.json") + " -o " + bundle +
                " --signing-key " + scratch.path("build.key"))
                .exit_code,
            0);
  const Outcome imported =
      run("import --json " + bundle +
              " --model kimi-k2.5 --ep 8 --role decode --rows 8:8 --trusted-keys " + trusted(),
          {{"CHORD_CACHE_DIR", scratch.path("other")}});
  EXPECT_EQ(imported.exit_code, 3) << imported.out << imported.err;
  const Json fit = imported.json()["deployment"];
  EXPECT_EQ(fit["covered"], 0);
  EXPECT_GE(fit["keys"], 2);
  EXPECT_NE(fit["differing_fields"].dump().find("source"), std::string::npos) << fit.dump();
  const Outcome checked =
      run("import --check --json " + bundle +
              " --model kimi-k2.5 --ep 8 --role decode --rows 8:8 --trusted-keys " + trusted(),
          {{"CHORD_CACHE_DIR", scratch.path("nothing")}});
  EXPECT_EQ(checked.json()["deployment"], fit) << "told by the bundle alone";
}

TEST_F(CacheFleet, WhyNamesEveryTierTheNearestEntryAndTheField) {
  fill();
  const std::string key = make_key("a").name;
  const Outcome there = run("why --json " + key);
  EXPECT_EQ(there.exit_code, 0);
  EXPECT_EQ(there.json()["kernels"][0]["tiers"][0]["reason"], "none");
  const Outcome absent = run("why " + std::string(32, 'a'));
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_NE(absent.out.find("absent"), std::string::npos) << absent.out;
  EXPECT_EQ(run("why nonsense").exit_code, 2);
  const Outcome layer = run("why --json --model kimi-k2.5 --ep 8 --role decode --rows 160");
  EXPECT_EQ(layer.exit_code, 3);
  // The manifest that is pinned tells the compiler, and with it the key is known.
  const Json kernel = layer.json()["kernels"][0];
  EXPECT_FALSE(kernel["key"].is_null()) << layer.out;
  EXPECT_FALSE(kernel["nearest"].is_null());
  EXPECT_NE(kernel["differing_fields"].dump().find("source"), std::string::npos);
}

TEST_F(CacheFleet, APasswordOnTheCommandLineIsRefusedAndNotRepeated) {
  for (const std::string& arguments :
       {std::string("why --remote redis://u:s3cret@host ") + std::string(32, 'a'),
        std::string("serve --remote redis://:s3cret@host")}) {
    const Outcome refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments;
    EXPECT_EQ((refused.out + refused.err).find("s3cret"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("CHORD_REMOTE_PASSWORD_FILE"), std::string::npos) << refused.err;
  }
}

TEST_F(CacheFleet, AFarmNeedsAStoreAndASigningKey) {
  EXPECT_NE(run("serve").err.find("--remote"), std::string::npos);
  EXPECT_NE(run("serve --remote redis://127.0.0.1:1").err.find("CHORD_SIGNING_KEY"),
            std::string::npos);
}

}  // namespace
}  // namespace chord::tools_test
