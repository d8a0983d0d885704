// chord-prewarm as a process: what it compiles, what it does not compile again, and what a machine
// without a compiler can do with the result.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

#define SKIP_WITHOUT_COMPILER() \
  if (!can_compile()) GTEST_SKIP() << "no NVRTC on this machine"

constexpr const char* kDecode = "--model kimi-k2.5 --ep 8 --role decode --rows 1:200 --json";
constexpr const char* kNoCompiler = "/nonexistent/libnvrtc.so.13";

Outcome prewarm(const std::string& cache, const std::string& arguments,
                Environment environment = {}) {
  environment["CHORD_CACHE_DIR"] = cache;
  return run_tool("chord-prewarm", words(arguments), environment);
}

std::set<std::string> files_under(const std::string& folder) {
  std::set<std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    files.insert(entry.path().string());
  return files;
}

// A cache that holds the deployment of kDecode; made once, read by many tests.
const ScratchFolder& warm_folder() {
  static const ScratchFolder scratch;
  static const Outcome first = prewarm(scratch.path("cache"), kDecode);
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  return scratch;
}

std::string warm_cache() { return warm_folder().path("cache"); }

TEST(Prewarm, FirstRunCompilesEveryKey) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  const Outcome outcome = prewarm(scratch.path("cache"), kDecode);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = outcome.json();
  EXPECT_GT(json["keys"].get<int>(), 1);
  EXPECT_EQ(json["compiles"], json["keys"]);
  EXPECT_EQ(json["hits"], 0);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_TRUE(json["seconds"].is_number());
  EXPECT_EQ(json["missing"], Json::array());
}

TEST(Prewarm, SecondRunCompilesNothingInUnderASecond) {
  SKIP_WITHOUT_COMPILER();
  const Outcome outcome = prewarm(warm_cache(), kDecode);
  EXPECT_EQ(outcome.exit_code, 0);
  const Json json = outcome.json();
  EXPECT_EQ(json["compiles"], 0);
  EXPECT_EQ(json["hits"], json["keys"]);
  EXPECT_LT(json["seconds"].get<double>(), 1.0);
}

TEST(Prewarm, CheckSaysCoveredWithZero) {
  SKIP_WITHOUT_COMPILER();
  const Outcome outcome = prewarm(warm_cache(), std::string(kDecode) + " --check");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.json()["missing"], Json::array());
}

TEST(Prewarm, CheckSaysNotCoveredWithThreeAndNamesTheMissing) {
  const ScratchFolder scratch;
  const Outcome outcome = prewarm(scratch.path("cache"), std::string(kDecode) + " --check");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = outcome.json();
  EXPECT_EQ(json["missing"].size(), json["keys"].get<std::size_t>());
  EXPECT_EQ(json["compiles"], 0);
  for (const Json& one : json["missing"]) EXPECT_NE(one["reason"], "");
}

TEST(Prewarm, CheckFindsADamagedEntry) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  fs::copy(warm_cache(), scratch.path("cache"), fs::copy_options::recursive);
  // The largest file is an entry with a cubin; one byte in its middle changes.
  std::string victim;
  for (const std::string& path : files_under(scratch.path("cache")))
    if (fs::is_regular_file(path) &&
        (victim.empty() || fs::file_size(path) > fs::file_size(victim)))
      victim = path;
  std::string bytes = read_file(victim);
  bytes[bytes.size() - bytes.size() / 4] ^= 1;
  write_file(victim, bytes);
  const Outcome outcome = prewarm(scratch.path("cache"), std::string(kDecode) + " --check");
  EXPECT_EQ(outcome.exit_code, 3) << victim;
  EXPECT_EQ(outcome.json()["missing"].size(), 1u);
}

TEST(Prewarm, DryRunListsKeysAndWritesNothing) {
  const ScratchFolder scratch;
  const Outcome outcome = prewarm(scratch.path("cache"), std::string(kDecode) + " --dry-run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_GT(outcome.json()["keys"].get<int>(), 1);
  EXPECT_EQ(outcome.json()["compiles"], 0);
  for (const std::string& path : files_under(scratch.path("cache")))
    EXPECT_FALSE(fs::is_regular_file(path)) << path;
}

TEST(Prewarm, PlainLinesWhereThereIsNoTerminal) {
  SKIP_WITHOUT_COMPILER();
  const Outcome outcome =
      prewarm(warm_cache(), "--model kimi-k2.5 --ep 8 --role decode --rows 1:200");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find('\r'), std::string::npos);
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  EXPECT_NE(outcome.out.find("0 compiled"), std::string::npos) << outcome.out;
}

TEST(Prewarm, RolesAndArchitecturesAddKeys) {
  const ScratchFolder scratch;
  const auto keys = [&](const std::string& more) {
    const Outcome outcome =
        prewarm(scratch.path("cache"), "--model kimi-k2.5 --ep 8 --dry-run --json " + more);
    EXPECT_EQ(outcome.exit_code, 0) << more << outcome.out;
    return outcome.json()["keys"].get<int>();
  };
  const int decode = keys("--role decode");
  EXPECT_GT(keys("--role both"), decode);
  EXPECT_GT(keys("--role decode --arch sm_90a --arch sm_103a"), decode);
  EXPECT_EQ(keys("--role decode --arch sm_90a --arch sm_90a"), decode);
  EXPECT_LE(keys("--role decode --rows 1:8"), decode);
  EXPECT_GT(keys("--role decode --family indexed --family grouped_masked"), decode);
}

TEST(Prewarm, WritesTheManifestThatWasAskedFor) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  const std::string path = scratch.path("manifest.json");
  const Outcome outcome = prewarm(warm_cache(), std::string(kDecode) + " --manifest " + path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.json()["manifest"], path);
  const Json manifest = Json::parse(read_file(path), nullptr, false);
  ASSERT_TRUE(manifest.is_object());
  EXPECT_NE(manifest.dump().find("sm_90a"), std::string::npos);
}

TEST(Prewarm, AManifestThatCanNotBeWrittenIsAnError) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  write_file(scratch.path("file"), "not a folder");
  const std::string path = scratch.path("file/manifest.json");
  const Outcome outcome = prewarm(warm_cache(), std::string(kDecode) + " --manifest " + path);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find(scratch.path("file")), std::string::npos) << outcome.out;
}

TEST(Prewarm, AManifestNeverReplacesALink) {
  const ScratchFolder scratch;
  const std::string link = scratch.path("link");
  fs::create_symlink("/dev/null", link);
  const Outcome outcome =
      prewarm(scratch.path("cache"), std::string(kDecode) + " --manifest " + link);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(files_under(scratch.path("cache")).empty()) << "refused before any compile";
}

TEST(Prewarm, ACubinThatTheFolderDoesNotTakeIsAFailure) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  fs::create_directory(scratch.path("cache"));
  fs::permissions(scratch.path("cache"), fs::perms::owner_all);
  write_file(scratch.path("cache/v2"), "in the place of the entries");
  const Outcome outcome =
      prewarm(scratch.path("cache"), "--model kimi-k2.5 --ep 8 --role decode --rows 1:1 --json");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
  EXPECT_EQ(outcome.json()["failed"], outcome.json()["keys"]);
  EXPECT_EQ(outcome.json()["compiles"], 0);
}

TEST(Prewarm, CoveredByReadOnlyFoldersItNeedsNoOther) {
  SKIP_WITHOUT_COMPILER();
  std::vector<std::string> arguments = {"-u", "CHORD_CACHE_DIR", tool_path("chord-prewarm")};
  for (const std::string& argument : words(kDecode)) arguments.push_back(argument);
  const Outcome outcome = run_program(
      "/usr/bin/env", arguments,
      {{"CHORD_CACHE_READONLY_DIRS", warm_cache()}, {"HOME", ""}, {"XDG_CACHE_HOME", ""}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.json()["hits"], outcome.json()["keys"]);
  EXPECT_TRUE(outcome.json()["manifest"].is_null()) << outcome.out;
}

TEST(Explain, AnotherValueOfAnOverrideIsAnotherKey) {
  SKIP_WITHOUT_COMPILER();
  const auto key = [](const Environment& overrides) {
    Environment environment = overrides;
    environment["CHORD_CACHE_DIR"] = warm_cache();
    return run_tool("chord-explain",
                    words("--family indexed --profile h200_decode_ep8 --n 4096 --k 7168 "
                          "--experts 48 --rows 160 --json"),
                    environment)
        .json()["key"]
        .dump();
  };
  const std::string plain = key({});
  EXPECT_EQ(key({{"CHORD_W4A16_BN", "256"}}), plain) << "the default";
  const std::set<std::string> keys{
      plain, key({{"CHORD_W4A16_BM", "16"}}), key({{"CHORD_W4A16_BN", "128"}}),
      key({{"CHORD_W4A16_BK", "128"}}), key({{"CHORD_W4A16_STAGES", "3"}})};
  EXPECT_EQ(keys.size(), 5u);
}

TEST(Explain, KeyTextNamesTheArchitectureAndTheCompiler) {
  SKIP_WITHOUT_COMPILER();
  const Outcome outcome = run_tool(
      "chord-explain", words("--model kimi-k2.5 --ep 8 --role decode --rows 160 --key --json"),
      {{"CHORD_CACHE_DIR", warm_cache()}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  const std::string text = outcome.json()["gate_up"].value("key_text", "");
  EXPECT_NE(text.find("sm_90a"), std::string::npos) << text;
  EXPECT_NE(text.find("NVRTC"), std::string::npos) << text;
}

TEST(WithoutCompiler, EveryPrewarmedKeyIsFound) {
  SKIP_WITHOUT_COMPILER();
  const Environment hidden{{"CHORD_NVRTC_LIBRARY", kNoCompiler}};
  const Outcome check = prewarm(warm_cache(), std::string(kDecode) + " --check", hidden);
  EXPECT_EQ(check.exit_code, 0) << check.out;
  const Outcome again = prewarm(warm_cache(), kDecode, hidden);
  EXPECT_EQ(again.exit_code, 0) << again.out;
  EXPECT_EQ(again.json()["compiles"], 0);
}

TEST(WithoutCompiler, ExplainSaysCached) {
  SKIP_WITHOUT_COMPILER();
  const Environment hidden{{"CHORD_NVRTC_LIBRARY", kNoCompiler}, {"CHORD_CACHE_DIR", warm_cache()}};
  const Outcome outcome = run_tool(
      "chord-explain", words("--model kimi-k2.5 --ep 8 --role decode --rows 160 --json"), hidden);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  for (const char* projection : {"gate_up", "down"}) {
    const Json one = outcome.json()[projection];
    EXPECT_EQ(one["cached"], true) << projection;
    EXPECT_TRUE(one["key"].is_string()) << projection;
    EXPECT_GT(one["registers"].get<int>(), 0) << projection;
    EXPECT_TRUE(one["local_bytes"].is_number()) << projection;
  }
}

TEST(WithoutCompiler, ANewKeyFailsAndNamesWhatIsMissing) {
  const Environment hidden{{"CHORD_NVRTC_LIBRARY", kNoCompiler}};
  const ScratchFolder scratch;
  const Outcome outcome = prewarm(scratch.path("cache"), kDecode, hidden);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find(kNoCompiler), std::string::npos) << outcome.out;
}

TEST(WithoutCompiler, AnEmptyCacheLeavesTheKeyUnknownAndSaysWhy) {
  const Environment hidden{{"CHORD_NVRTC_LIBRARY", kNoCompiler}};
  const Outcome outcome = run_tool(
      "chord-explain", words("--model kimi-k2.5 --ep 8 --role decode --rows 160 --json"), hidden);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(outcome.json()["gate_up"]["key"].is_null());
  EXPECT_NE(outcome.json()["gate_up"]["key_missing"], "");
  EXPECT_EQ(outcome.json()["gate_up"]["cached"], false);
}

TEST(MovedInstallation, KeepsItsKeys) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder elsewhere;
  fs::copy(tool_path("chord-prewarm"), elsewhere.path("chord-prewarm"));
  fs::copy(warm_cache(), elsewhere.path("moved cache"), fs::copy_options::recursive);
  const Environment other{{"CHORD_CACHE_DIR", elsewhere.path("moved cache")},
                          {"LC_ALL", "tr_TR.UTF-8"},
                          {"TZ", "Pacific/Chatham"},
                          {"HOME", elsewhere.path()}};
  const Outcome outcome = run_program(elsewhere.path("chord-prewarm"), words(kDecode), other);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.json()["compiles"], 0);
  EXPECT_EQ(outcome.json()["hits"], outcome.json()["keys"]);
}

TEST(ReadOnlyFolder, OfAnImageLayerIsAHit) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder scratch;
  const Outcome outcome = prewarm(scratch.path("cache"), std::string(kDecode) + " --check",
                                  {{"CHORD_CACHE_READONLY_DIRS", warm_cache()}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
}

TEST(CacheFolder, FlagComesBeforeTheEnvironment) {
  SKIP_WITHOUT_COMPILER();
  const ScratchFolder empty;
  const Outcome outcome =
      prewarm(empty.path("cache"), std::string(kDecode) + " --check --cache-dir " + warm_cache());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.json()["cache_dir"], warm_cache());
}

TEST(CacheFolder, ThatIsAFileIsAnErrorThatNamesIt) {
  const ScratchFolder scratch;
  write_file(scratch.path("file"), "not a folder");
  const Outcome outcome = prewarm(scratch.path("file"), kDecode);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find(scratch.path("file")), std::string::npos) << outcome.out;
  EXPECT_EQ(read_file(scratch.path("file")), "not a folder");
}

TEST(Prewarm, HelpShowsAnExampleAndTheExitCodes) {
  const Outcome help = run_tool("chord-prewarm", {"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("  chord-prewarm --model kimi-k2.5 --ep 8"), std::string::npos);
  EXPECT_NE(help.out.find("Exit codes"), std::string::npos);
}

}  // namespace
}  // namespace chord::tools_test
