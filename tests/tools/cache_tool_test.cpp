// chord-cache as a process: what ls and show tell of entries.
#include "tests/tools/cache_tool.h"

#include <chrono>

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

class CacheLs : public CacheToolTest {};
class CacheShow : public CacheToolTest {};

std::vector<std::string> listed_keys(const Json& listing) {
  std::vector<std::string> keys;
  for (const Json& entry : listing["entries"]) keys.push_back(entry["key"]);
  return keys;
}

TEST_F(CacheLs, TellsTheFactsOfEveryEntry) {
  const auto keys = fill_some(3);
  const Json listing = json("ls");
  EXPECT_EQ(listing["cache_dir"], root());
  EXPECT_EQ(listing["count"], 3);
  const Json entry = listing["entries"][0];
  EXPECT_EQ(entry["arch"], "sm_90a");
  EXPECT_EQ(entry["compiler"], "NVRTC 13.0.88");
  EXPECT_EQ(entry["compile_ms"], 104.25);
  EXPECT_EQ(entry["label"], "chord_kernel");
  EXPECT_TRUE(entry["signer"].is_null());
  EXPECT_LT(entry["age_s"].get<double>(), 60);
  EXPECT_EQ(entry["bytes"], fs::file_size(layout().entry(entry["key"].get<std::string>())));
}

TEST_F(CacheLs, IsOneLineAnEntryForPeople) {
  const auto keys = fill_some(3);
  const std::string out = text("ls");
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5) << out;
  for (const CacheKey& key : keys) EXPECT_NE(out.find(key.name), std::string::npos) << out;
  EXPECT_NE(out.find("3 entries"), std::string::npos) << out;
}

TEST_F(CacheLs, TakesLabelsFromPinnedManifests) {
  const auto keys = fill_some(1);
  ASSERT_TRUE(open()->write_manifest(manifest_of("kimi", keys[0], "gate_up of kimi")).ok());
  EXPECT_EQ(json("ls")["entries"][0]["label"], "gate_up of kimi");
}

TEST_F(CacheLs, TellsWhoSigned) {
  const CacheKey key = make_key("source");
  ASSERT_TRUE(
      open()
          ->get_or_make(
              key, [&]() -> Result<cache::Entry> { return cache::signed_entry(key, signing_key); })
          .ok());
  EXPECT_EQ(json("ls")["entries"][0]["signer"], signing_key.signer());
}

TEST_F(CacheLs, Filters) {
  auto keys = fill_some(2);
  age(keys[1], 40);
  EXPECT_EQ(json("ls --arch sm_90a")["count"], 2);
  EXPECT_EQ(json("ls --arch sm_100a")["count"], 0);
  EXPECT_EQ(json("ls --compiler 13.0")["count"], 2);
  EXPECT_EQ(json("ls --compiler 12.9")["count"], 0);
  EXPECT_EQ(listed_keys(json("ls --unused-days 30")), std::vector<std::string>{keys[1].name});
  EXPECT_EQ(json("ls --unused-days 0")["count"], 2);
}

TEST_F(CacheLs, Sorts) {
  const CacheKey one = make_key("one"), two = make_key("two");
  fill({one}, 1000);
  fill({two}, 5000);
  age(one, 1);
  age(two, 2);
  EXPECT_EQ(listed_keys(json("ls --sort size")), (std::vector<std::string>{two.name, one.name}));
  EXPECT_EQ(listed_keys(json("ls --sort used")), (std::vector<std::string>{two.name, one.name}));
  age(one, 3);
  EXPECT_EQ(listed_keys(json("ls --sort used")), (std::vector<std::string>{one.name, two.name}));
  EXPECT_EQ(listed_keys(json("ls")).front(), std::min(one.name, two.name));
}

TEST_F(CacheLs, TellsOfADamagedEntry) {
  const auto keys = fill_some(1);
  damage(keys[0]);
  const Json entry = json("ls")["entries"][0];
  EXPECT_EQ(entry["problem"]["reason"], "damaged");
  EXPECT_FALSE(entry.contains("arch"));
  EXPECT_NE(text("ls").find("damaged"), std::string::npos);
}

TEST_F(CacheLs, ListsTwoThousandEntriesInASecond) {
  const auto keys = fill_some(2000, 2000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(json("ls --sort used")["count"], 2000);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(CacheLs, OfAnEmptyFolderIsEmpty) {
  fs::create_directory(root());
  fs::permissions(root(), fs::perms::owner_all);
  EXPECT_EQ(json("ls")["entries"], Json::array());
  EXPECT_EQ(text("ls"), "0 entries, 0 B\n");
}

TEST_F(CacheShow, TellsAllOfAnEntry) {
  const auto keys = fill_some(2);
  const Json shown = json("show " + keys[0].name.substr(0, 6));
  EXPECT_EQ(shown["key"], keys[0].name);
  EXPECT_EQ(shown["path"], path_of(keys[0]));
  EXPECT_EQ(shown["fields"]["arch"], "sm_90a");
  EXPECT_EQ(shown["fields"]["source"], "source 0");
  EXPECT_EQ(shown["threads"], 384);
  EXPECT_EQ(shown["registers"], 168);
  EXPECT_EQ(shown["shared_bytes"], 123456);
  EXPECT_EQ(shown["cubin_bytes"], 1000);
  EXPECT_EQ(shown["checksum"], "whole");
  EXPECT_EQ(shown["signature"], "not signed");
  const std::string out = text("show " + keys[0].name);
  for (const char* part : {"arch", "384 threads", "168 registers", "NVRTC 13.0.88", "not signed"})
    EXPECT_NE(out.find(part), std::string::npos) << out;
}

TEST_F(CacheShow, CutsALongFieldShort) {
  const CacheKey key = make_key(std::string(5000, 'x'));
  fill({key});
  EXPECT_EQ(json("show " + key.name)["fields"]["source"]["bytes"], 5000);
  EXPECT_LT(text("show " + key.name).size(), 1500u);
}

TEST_F(CacheShow, ChecksTheSignature) {
  const CacheKey good = make_key("good"), wrong = make_key("wrong");
  const cache::Entry right = cache::signed_entry(good, signing_key);
  cache::Entry forged = cache::signed_entry(wrong, signing_key);
  forged.signature = right.signature;
  const auto store = open();
  ASSERT_TRUE(store->get_or_make(good, [&] { return Result<cache::Entry>(right); }).ok());
  ASSERT_TRUE(store->get_or_make(wrong, [&] { return Result<cache::Entry>(forged); }).ok());
  EXPECT_EQ(json("show " + good.name)["signer"], signing_key.signer());
  EXPECT_EQ(json("show " + good.name)["signature"], "right; no trusted keys are named");
  EXPECT_EQ(json("show " + wrong.name)["signature"], "wrong");
  const std::string trusted = folder / "trusted";
  write_file(trusted, signing_key.signer() + " a test's key\n");
  const Outcome outcome =
      run_words(words("--json show " + good.name), {{"CHORD_TRUSTED_KEYS", trusted}});
  EXPECT_EQ(outcome.json()["signature"], "right, of a trusted key") << outcome.out;
}

TEST_F(CacheShow, ExtractsCubinAndSource) {
  const auto keys = fill_some(1);
  const std::string cubin = folder / "kernel.cubin", source = folder / "kernel.cu";
  write_file(cubin, "of before");
  (void)json("show " + keys[0].name + " --cubin " + cubin + " --source " + source);
  EXPECT_EQ(read_file(cubin), make_entry(keys[0]).cubin);
  EXPECT_EQ(read_file(source), "source 0");
}

TEST_F(CacheShow, ExtractsToStandardOutputAndNothingElse) {
  const auto keys = fill_some(1);
  EXPECT_EQ(text("show " + keys[0].name + " --cubin -"), make_entry(keys[0]).cubin);
  EXPECT_EQ(text("show " + keys[0].name + " --source -"), "source 0");
}

TEST_F(CacheShow, ReplacesNoFolderLinkOrDevice) {
  const auto keys = fill_some(1);
  const std::string link = folder / "link", show = "show " + keys[0].name + " --cubin ";
  fs::create_symlink(folder / "target", link);
  EXPECT_NE(refused(show + folder.path()).find("folder"), std::string::npos);
  EXPECT_NE(refused(show + "/dev/null").find("no regular file"), std::string::npos);
  EXPECT_NE(refused(show + link).find("no regular file"), std::string::npos);
  EXPECT_NE(refused(show + folder / "none/kernel.cubin").find("does not exist"), std::string::npos);
  EXPECT_NE(refused(show + folder / "new/").find("folder"), std::string::npos);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::exists(folder / "target"));
  EXPECT_FALSE(fs::exists(folder / "none"));
}

TEST_F(CacheShow, RefusesTwoThingsForStandardOutput) {
  const auto keys = fill_some(1);
  EXPECT_NE(refused("show " + keys[0].name + " --cubin - --source -").find("--source"),
            std::string::npos);
  const Outcome outcome = run("show " + keys[0].name + " --cubin - --json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(outcome.json().contains("error")) << outcome.out;
}

TEST_F(CacheShow, OfADamagedEntryFailsWithTheReason) {
  const auto keys = fill_some(1);
  damage(keys[0]);
  EXPECT_NE(refused("show " + keys[0].name, 1).find("checksum"), std::string::npos);
}

TEST_F(CacheShow, OfAKeyThatIsNotThereIsThree) {
  (void)fill_some(1);
  (void)refused("show " + make_key("other").name, 3);
}

TEST_F(CacheShow, OfAnAmbiguousPrefixListsTheCandidates) {
  const auto keys = fill_some(1);
  std::string other = keys[0].name;
  other.back() = other.back() == '0' ? '1' : '0';
  fs::copy(path_of(keys[0]), layout().entry(other));
  const std::string error = refused("show " + keys[0].name.substr(0, 8));
  EXPECT_NE(error.find(keys[0].name), std::string::npos) << error;
  EXPECT_NE(error.find(other), std::string::npos) << error;
}

}  // namespace
}  // namespace chord::tools_test
