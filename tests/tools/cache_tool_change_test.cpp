// chord-cache as a process: what prune, pin, unpin, rm and verify --set-aside change.
#include <algorithm>

#include "tests/tools/cache_tool.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

class CachePrune : public CacheToolTest {};
class CachePins : public CacheToolTest {};
class CacheRm : public CacheToolTest {};
class CacheSetAside : public CacheToolTest {};

std::vector<std::string> removed_by(const Json& pruned) {
  std::vector<std::string> removed;
  for (const Json& one : pruned["removed"]) removed.push_back(one["what"]);
  std::sort(removed.begin(), removed.end());
  return removed;
}

TEST_F(CachePrune, RemovesTheLeastRecentlyUsed) {
  const auto keys = fill_some(10);
  for (int i = 0; i < 10; ++i) age(keys[i], i + 1);
  const Json pruned = json("prune --max-files 5");
  EXPECT_GE(pruned["evicted"], 5);
  EXPECT_EQ(pruned["evicted"].get<std::size_t>(), pruned["removed"].size());
  EXPECT_EQ(pruned["left"]["files"].get<int>(), 10 - pruned["evicted"].get<int>());
  EXPECT_TRUE(is_there(keys[0]));
  for (int i = 5; i < 10; ++i) EXPECT_FALSE(is_there(keys[i])) << i;
}

TEST_F(CachePrune, TakesSizesWithUnits) {
  const auto keys = fill_some(4, 600 << 10);
  EXPECT_EQ(json("prune --max-bytes 1G")["evicted"], 0);
  EXPECT_EQ(json("prune --max-bytes 1G")["limits"]["max_bytes"], 1 << 30);
  EXPECT_EQ(json("prune --max-bytes 2M")["evicted"], 1);
  EXPECT_EQ(json("prune --max-bytes 1000")["evicted"], 3);
}

// What was copied here a moment ago is not unused for long, whatever its stamp says (pruner.h).
TEST_F(CachePrune, TakesAnAgeAndLeavesWhatHasJustArrived) {
  const auto keys = fill_some(3);
  age(keys[2], 100);
  const Json pruned = json("prune --max-age-days 90");
  EXPECT_EQ(pruned["limits"]["max_age_days"], 90);
  EXPECT_EQ(pruned["evicted"], 0);
  EXPECT_TRUE(is_there(keys[2]));
}

TEST_F(CachePrune, ADryRunTellsWhatTheRunDoesAndChangesNothing) {
  const auto keys = fill_some(10);
  for (int i = 0; i < 10; ++i) age(keys[i], i + 1);
  const auto before = picture();
  const Json dry = json("prune --max-files 5 --dry-run");
  EXPECT_EQ(picture(), before);
  EXPECT_EQ(dry["dry_run"], true);
  const Json real = json("prune --max-files 5");
  EXPECT_EQ(removed_by(dry), removed_by(real));
  EXPECT_EQ(dry["left"], real["left"]);
  EXPECT_EQ(dry["removed_bytes"], real["removed_bytes"]);
  EXPECT_NE(text("prune --max-files 1 --dry-run").find("would remove"), std::string::npos);
}

TEST_F(CachePrune, LeavesPinnedEntries) {
  const auto keys = fill_some(4);
  (void)json("pin " + write_manifest("kimi", {keys[0], keys[1]}));
  (void)json("prune --max-files 0");
  EXPECT_TRUE(is_there(keys[0]) && is_there(keys[1]));
  EXPECT_FALSE(is_there(keys[2]) || is_there(keys[3]));
}

TEST_F(CachePrune, SaysThatAnotherProcessPrunes) {
  (void)fill_some(1);
  std::unique_ptr<FileLock> held;
  ASSERT_FALSE(real.try_lock(root() + "/prune.lock", held));
  EXPECT_NE(refused("prune", 1).find("another process"), std::string::npos);
}

TEST_F(CachePins, OfAManifestAreListedByLabel) {
  const auto keys = fill_some(3);
  EXPECT_EQ(json("pins")["pins"], Json::array());
  EXPECT_EQ(json("pin " + write_manifest("kimi k2 decode", keys))["label"], "kimi k2 decode");
  const Json pins = json("pins")["pins"];
  ASSERT_EQ(pins.size(), 1u);
  EXPECT_EQ(pins[0]["label"], "kimi k2 decode");
  EXPECT_EQ(pins[0]["keys"], 3);
  EXPECT_EQ(pins[0]["present"], 3);
  EXPECT_NE(text("pins").find("kimi k2 decode"), std::string::npos);
}

TEST_F(CachePins, CountTheKeysThatAreNotThere) {
  const auto keys = fill_some(2);
  (void)json("pin " + write_manifest("kimi", {keys[0], make_key("not made")}));
  EXPECT_EQ(json("pins")["pins"][0]["keys"], 2);
  EXPECT_EQ(json("pins")["pins"][0]["present"], 1);
}

TEST_F(CachePins, OfAKeyKeepIt) {
  const auto keys = fill_some(2);
  EXPECT_EQ(json("pin " + keys[0].name.substr(0, 8))["keys"], 1);
  (void)json("prune --max-files 0");
  EXPECT_TRUE(is_there(keys[0]));
  EXPECT_FALSE(is_there(keys[1]));
  (void)json("unpin " + keys[0].name.substr(0, 8));
  EXPECT_EQ(json("pins")["pins"], Json::array());
  (void)json("prune --max-files 0");
  EXPECT_FALSE(is_there(keys[0]));
}

TEST_F(CachePins, GoByLabel) {
  const auto keys = fill_some(1);
  (void)json("pin " + write_manifest("a label of words", keys));
  const Outcome outcome = run_words({"unpin", "a label of words", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(json("pins")["pins"], Json::array());
  EXPECT_TRUE(is_there(keys[0]));
}

TEST_F(CachePins, OfWhatIsNotThereAreRefused) {
  (void)fill_some(1);
  (void)refused("pin " + make_key("other").name, 3);
  EXPECT_NE(refused("unpin nothing").find("nothing"), std::string::npos);
  EXPECT_NE(refused("pin /nonexistent.json").find("/nonexistent.json"), std::string::npos);
  write_file(folder / "broken.json", "{");
  EXPECT_NE(refused("pin " + folder / "broken.json").find("JSON"), std::string::npos);
  EXPECT_EQ(json("pins")["pins"], Json::array());
}

TEST_F(CacheRm, RemovesEntries) {
  const auto keys = fill_some(3);
  const Json removed = json("rm " + keys[0].name + " " + keys[1].name.substr(0, 8));
  EXPECT_EQ(removed["removed"].size(), 2u);
  EXPECT_EQ(removed["missing"], Json::array());
  EXPECT_FALSE(is_there(keys[0]) || is_there(keys[1]));
  EXPECT_TRUE(is_there(keys[2]));
}

TEST_F(CacheRm, SaysWhichWereNotThereAndRemovesTheRest) {
  const auto keys = fill_some(2);
  const std::string other = make_key("other").name;
  const Json removed = json("rm " + other + " " + keys[0].name, 3);
  EXPECT_EQ(removed["missing"], Json::array({other}));
  EXPECT_EQ(removed["removed"], Json::array({keys[0].name}));
  EXPECT_FALSE(is_there(keys[0]));
  EXPECT_NE(text("rm " + other, 3).find(other), std::string::npos);
}

TEST_F(CacheRm, RefusesAPinnedEntryAndThenRemovesNone) {
  const auto keys = fill_some(2);
  (void)json("pin " + write_manifest("kimi", {keys[0]}));
  const std::string error = refused("rm " + keys[1].name + " " + keys[0].name);
  EXPECT_NE(error.find(keys[0].name), std::string::npos) << error;
  EXPECT_NE(error.find("--force"), std::string::npos) << error;
  EXPECT_TRUE(is_there(keys[0]) && is_there(keys[1]));
  (void)json("rm --force " + keys[0].name);
  EXPECT_FALSE(is_there(keys[0]));
}

TEST_F(CacheRm, OfAnAmbiguousPrefixRemovesNone) {
  const auto keys = fill_some(2);
  std::string other = keys[0].name;
  other.back() = other.back() == '0' ? '1' : '0';
  fs::copy(path_of(keys[0]), layout().entry(other));
  (void)refused("rm " + keys[1].name + " " + keys[0].name.substr(0, 8));
  EXPECT_TRUE(is_there(keys[0]) && is_there(keys[1]));
}

TEST_F(CacheRm, RemovesADamagedEntry) {
  const auto keys = fill_some(1);
  damage(keys[0]);
  (void)json("rm " + keys[0].name);
  EXPECT_FALSE(is_there(keys[0]));
}

TEST_F(CacheSetAside, MovesDamagedEntriesToTheBadFolder) {
  const auto keys = fill_some(3);
  damage(keys[0]);
  const Json report = json("verify --set-aside", 1);
  ASSERT_EQ(report["bad"].size(), 1u);
  EXPECT_EQ(report["bad"][0]["done"], "set aside");
  EXPECT_TRUE(fs::exists(layout().bad(keys[0].name)));
  EXPECT_FALSE(is_there(keys[0]));
  EXPECT_EQ(json("verify --set-aside")["entries"], 2);
}

TEST_F(CacheSetAside, LeavesWhatAPersonMustRepair) {
  const auto keys = fill_some(1);
  fs::permissions(path_of(keys[0]), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(json("verify --set-aside", 1)["bad"][0]["done"], "kept");
  EXPECT_TRUE(is_there(keys[0]));
}

TEST_F(CacheSetAside, RemovesWhatLiesInAnotherSubfolder) {
  const auto keys = fill_some(1);
  const std::string stray = layout().entries() + (keys[0].name.starts_with("00") ? "/11" : "/00");
  fs::create_directory(stray);
  fs::permissions(stray, fs::perms::owner_all);
  fs::copy(path_of(keys[0]), stray + "/" + keys[0].name);
  EXPECT_EQ(json("verify --set-aside", 1)["bad"][0]["done"], "removed");
  EXPECT_TRUE(is_there(keys[0]));
  EXPECT_EQ(json("verify")["entries"], 1);
}

}  // namespace
}  // namespace chord::tools_test
