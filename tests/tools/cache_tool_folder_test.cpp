// chord-cache as a process: what stat and verify tell of a whole folder.
#include "tests/tools/cache_tool.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

class CacheStat : public CacheToolTest {};
class CacheVerify : public CacheToolTest {};

TEST_F(CacheStat, SumsTheFolder) {
  const auto keys = fill_some(3);
  damage(keys[0]);
  age(keys[1], 10);
  fs::create_directories(root() + "/v0/ab");
  write_file(root() + "/v0/ab/" + std::string(32, 'a').replace(1, 1, "b"), "old");
  const Json stat = json("stat");
  EXPECT_EQ(stat["cache_dir"], root());
  EXPECT_EQ(stat["entries"], 3);
  EXPECT_EQ(stat["problems"], 1);
  EXPECT_EQ(stat["by_arch"]["sm_90a"]["entries"], 2);
  EXPECT_EQ(stat["by_compiler"]["NVRTC 13.0.88"]["entries"], 2);
  ASSERT_EQ(stat["schemas"].size(), 2u) << stat;
  EXPECT_EQ(stat["schemas"][0]["schema"], 0);
  EXPECT_EQ(stat["schemas"][0]["entries"], 1);
  EXPECT_EQ(stat["schemas"][0]["in_use"], false);
  EXPECT_EQ(stat["schemas"][1]["schema"], cache::kSchemaVersion);
  EXPECT_LT(stat["oldest_use"].get<std::string>(), stat["newest_use"].get<std::string>());
  EXPECT_EQ(stat["locks"], Json::array());
  EXPECT_NE(text("stat").find("schema 0"), std::string::npos);
}

TEST_F(CacheStat, TellsTheLimitsInForce) {
  (void)fill_some(1);
  EXPECT_EQ(json("stat")["limits"]["max_bytes"], std::uint64_t{2} << 30);
  const Outcome outcome = run_words({"stat", "--json"}, {{"CHORD_CACHE_MAX_BYTES", "64M"},
                                                         {"CHORD_CACHE_MAX_FILES", "100"},
                                                         {"CHORD_CACHE_MAX_AGE_DAYS", "30"}});
  EXPECT_EQ(outcome.json()["limits"],
            (Json{{"max_bytes", 64 << 20}, {"max_files", 100}, {"max_age_days", 30}}))
      << outcome.out;
}

TEST_F(CacheStat, TellsWhetherALockIsHeld) {
  const auto keys = fill_some(1);
  const std::string path = layout().lock(keys[0].name), left = layout().lock(std::string(32, 'a'));
  fs::create_directories(layout().locks());
  std::unique_ptr<FileLock> held;
  ASSERT_FALSE(real.try_lock(path, held));
  ASSERT_TRUE(held);
  write_file(path, "pid 4711 (worker) on node7 since noon\n");
  write_file(left, "");
  const Json locks = json("stat")["locks"];
  ASSERT_EQ(locks.size(), 2u);
  for (const Json& lock : locks) {
    const bool is_ours = lock["key"] == keys[0].name;
    EXPECT_EQ(lock["held"], is_ours) << lock;
    if (is_ours) {
      EXPECT_EQ(lock["owner"], "pid 4711 (worker) on node7 since noon");
    }
  }
}

TEST_F(CacheStat, TellsPinsCompilersAndWhatWasSetAside) {
  const auto keys = fill_some(1);
  const auto store = open();
  ASSERT_TRUE(store->write_manifest(manifest_of("kimi", keys[0], "x")).ok());
  store->record_compiler("NVRTC 13.0.88");
  fs::create_directories(layout().bad());
  write_file(layout().bad(keys[0].name), "damaged");
  write_file(layout().shard(keys[0].name) + "/.tmp-1", "half");
  const Json stat = json("stat");
  ASSERT_EQ(stat["pins"].size(), 1u);
  EXPECT_EQ(stat["pins"][0]["label"], "kimi");
  ASSERT_EQ(stat["recorded_compilers"].size(), 1u);
  EXPECT_EQ(stat["recorded_compilers"][0]["compiler"], "NVRTC 13.0.88");
  EXPECT_EQ(stat["bad"]["files"], 1);
  EXPECT_EQ(stat["temporaries"]["files"], 1);
}

TEST_F(CacheVerify, OfAWholeFolderIsGood) {
  (void)fill_some(5);
  const Json report = json("verify");
  EXPECT_EQ(report["entries"], 5);
  EXPECT_EQ(report["good"], 5);
  EXPECT_EQ(report["bad"], Json::array());
}

TEST_F(CacheVerify, NamesEveryBadEntryAndTouchesNone) {
  const auto keys = fill_some(6);
  damage(keys[0]);
  fs::permissions(path_of(keys[1]), fs::perms::others_write, fs::perm_options::add);
  fs::create_directories(layout().shard(make_key("other").name));
  fs::copy(path_of(keys[2]), path_of(make_key("other")));
  const auto before = picture();
  const Json report = json("verify", 1);
  EXPECT_EQ(picture(), before);
  EXPECT_EQ(report["entries"], 7);
  EXPECT_EQ(report["good"], 4);
  std::map<std::string, std::string> reasons;
  for (const Json& one : report["bad"]) {
    reasons[one["key"]] = one["reason"];
    EXPECT_NE(one["found"], "");
  }
  EXPECT_EQ(reasons[keys[0].name], "damaged");
  EXPECT_EQ(reasons[keys[1].name], name(MissReason::untrusted));
  EXPECT_EQ(reasons[make_key("other").name], name(MissReason::other_key));
  EXPECT_NE(text("verify", 1).find(keys[0].name), std::string::npos);
}

TEST_F(CacheVerify, WantsSignaturesOfTrustedKeysOnlyWhenAsked) {
  const CacheKey signed_key = make_key("signed"), bare = make_key("bare");
  const std::string trusted = folder / "trusted";
  write_file(trusted, signing_key.signer() + " a test's key\n");
  ASSERT_TRUE(open()
                  ->get_or_make(signed_key,
                                [&]() -> Result<cache::Entry> {
                                  return cache::signed_entry(signed_key, signing_key);
                                })
                  .ok());
  EXPECT_EQ(json("verify --signatures --trusted-keys " + trusted)["good"], 1);
  fill({bare});
  EXPECT_EQ(json("verify")["good"], 2);
  const Json report = json("verify --signatures --trusted-keys " + trusted, 1);
  ASSERT_EQ(report["bad"].size(), 1u);
  EXPECT_EQ(report["bad"][0]["key"], bare.name);
  EXPECT_EQ(report["bad"][0]["reason"], name(MissReason::not_signed));
  write_file(trusted, cache::SigningKey::generate().signer() + " another\n");
  EXPECT_EQ(json("verify --signatures --trusted-keys " + trusted, 1)["bad"].size(), 2u);
}

}  // namespace
}  // namespace chord::tools_test
