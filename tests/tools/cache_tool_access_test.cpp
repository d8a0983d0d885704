// chord-cache where things are not as they should be: folders that are missing, read-only, of
// another user, links; flags that are wrong; and what --help says.
#include "tests/tools/cache_tool.h"

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

class CacheAccess : public CacheToolTest {
 protected:
  void SetUp() override { keys_ = fill_some(2); }

  // Every command that only reads, on the folder as it is.
  std::vector<std::string> reading() const {
    return {"ls", "show " + keys_[0].name, "stat", "verify", "pins", "prune --dry-run"};
  }
  std::vector<std::string> changing() const {
    return {"prune", "pin " + keys_[0].name, "unpin " + keys_[0].name, "rm " + keys_[0].name,
            "verify --set-aside"};
  }
  // Skips where a plain user can not come to the tool at all.
  bool plain_user_can_run() const { return run_as_plain_user("--version").exit_code == 0; }

  std::vector<CacheKey> keys_;
};

TEST_F(CacheAccess, ReadingChangesNothing) {
  const auto before = picture();
  for (const std::string& command : reading()) (void)text(command);
  EXPECT_EQ(picture(), before);
}

TEST_F(CacheAccess, ReadingWorksOnAReadOnlyFolder) {
  if (!plain_user_can_run()) GTEST_SKIP() << "a plain user can not run the tool here";
  hand_over(::geteuid() == 0 ? kPlainUser : ::geteuid(), 0500, 0400);
  for (const std::string& command : reading()) {
    const Outcome outcome = run_as_plain_user(command);
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "") << command;
  }
  for (const std::string& command : changing()) {
    const Outcome outcome = run_as_plain_user(command);
    EXPECT_EQ(outcome.exit_code, 2) << command << "\n" << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(root()), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("Permission denied"), std::string::npos) << outcome.err;
  }
  for (const CacheKey& key : keys_) EXPECT_TRUE(is_there(key));
  hand_over(::geteuid(), 0700, 0600);
}

TEST_F(CacheAccess, ReadingWorksOnAFolderOfRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of root";
  if (!plain_user_can_run()) GTEST_SKIP() << "a plain user can not run the tool here";
  hand_over(0, 0755, 0644);
  for (const std::string& command : reading())
    EXPECT_EQ(run_as_plain_user(command).exit_code, 0) << command;
  for (const std::string& command : changing()) {
    const Outcome outcome = run_as_plain_user(command);
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_NE(outcome.err.find("belongs to user 0"), std::string::npos) << outcome.err;
  }
}

TEST_F(CacheAccess, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  hand_over(kPlainUser, 0755, 0644);
  for (const std::string& command : reading())
    EXPECT_NE(refused(command).find("belongs to user 4711"), std::string::npos) << command;
  for (const std::string& command : changing())
    EXPECT_NE(refused(command).find("belongs to user 4711"), std::string::npos) << command;
}

TEST_F(CacheAccess, AFolderThatOthersMayWriteIsRefused) {
  fs::permissions(root(), fs::perms::all);
  for (const std::string& command : reading())
    EXPECT_NE(refused(command).find("others may write"), std::string::npos) << command;
}

TEST_F(CacheAccess, ALinkToAFolderIsRefused) {
  const std::string link = folder / "link";
  fs::create_directory_symlink(root(), link);
  for (const std::string& command : reading()) (void)refused(command + " --cache-dir " + link);
}

TEST_F(CacheAccess, AMissingFolderIsNamedAndNotMade) {
  const std::string missing = folder / "missing";
  std::vector<std::string> all = reading();
  for (const std::string& command : changing()) all.push_back(command);
  for (const std::string& command : all)
    EXPECT_NE(refused(command + " --cache-dir " + missing).find(missing), std::string::npos);
  EXPECT_FALSE(fs::exists(missing));
}

TEST_F(CacheAccess, TheFlagComesBeforeTheEnvironment) {
  const Outcome outcome =
      run_words({"ls", "--json", "--cache-dir", root()}, {{"CHORD_CACHE_MAX_FILES", "7"}});
  EXPECT_EQ(outcome.json()["count"], 2);
  const Outcome other = run_tool("chord-cache", {"--cache-dir", root(), "--json", "ls"},
                                 {{"CHORD_CACHE_DIR", folder / "elsewhere"}});
  EXPECT_EQ(other.json()["count"], 2) << other.out;
}

TEST_F(CacheAccess, WithoutAHomeThereIsNoFolder) {
  std::vector<std::string> arguments{"-u", "CHORD_CACHE_DIR", tool_path("chord-cache"), "ls"};
  const Outcome outcome =
      run_program("/usr/bin/env", arguments, {{"HOME", ""}, {"XDG_CACHE_HOME", ""}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("HOME"), std::string::npos) << outcome.err;
}

TEST_F(CacheAccess, AnOverrideOfKernelsDoesNotMatter) {
  EXPECT_EQ(run_words({"ls"}, {{"CHORD_W4A16_BM", "garbage"}}).exit_code, 0);
}

TEST_F(CacheAccess, WrongFlagsAreRefusedByName) {
  const std::string key = keys_[0].name;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "command"},
      {"nonsense", "nonsense"},
      {"ls stray", "stray"},
      {"ls --nonsense", "--nonsense"},
      {"ls --arch sm_80", "sm_80"},
      {"ls --arch", "--arch"},
      {"ls --sort colour", "--sort"},
      {"ls --unused-days -1", "--unused-days"},
      {"ls --unused-days many", "--unused-days"},
      {"ls --cache-dir a --cache-dir b", "--cache-dir"},
      {"ls --cache-dir " + folder / "none", "none"},
      {"show", "KEY"},
      {"show abc", "abc"},
      {"show ABCDEF", "ABCDEF"},
      {"show ../../etc/passwd", "key"},
      {"show " + key + " --cubin", "--cubin"},
      {"verify --trusted-keys x", "--signatures"},
      {"verify --signatures", "--trusted-keys"},
      {"verify --signatures --trusted-keys /nonexistent", "/nonexistent"},
      {"prune --max-bytes 2X", "--max-bytes"},
      {"prune --max-bytes -2", "--max-bytes"},
      {"prune --max-bytes 99999999999999999999", "--max-bytes"},
      {"prune --max-files many", "--max-files"},
      {"prune --max-age-days 1.5", "--max-age-days"},
      {"rm", "KEY"},
      {"rm abc", "abc"},
      {"pin", "KEY"},
      {"unpin", "KEY"}};
  for (const auto& [arguments, names] : cases)
    EXPECT_NE(refused(arguments).find(names), std::string::npos) << arguments;
  for (const CacheKey& one : keys_) EXPECT_TRUE(is_there(one));
}

TEST_F(CacheAccess, HelpOfEveryCommandShowsExamplesAndExitCodes) {
  for (const std::string command :
       {"ls", "show", "stat", "verify", "prune", "pin", "unpin", "pins", "rm"}) {
    const std::string help = text(command + " --help");
    EXPECT_NE(help.find("\n  chord-cache " + command), std::string::npos) << help;
    EXPECT_NE(help.find("Exit codes"), std::string::npos) << command;
    EXPECT_NE(help.find("--cache-dir"), std::string::npos) << command;
    EXPECT_NE(text("--help").find("\n  " + command), std::string::npos) << command;
  }
}

// The examples of --help, on this folder, with this folder's keys and files.
TEST_F(CacheAccess, ExamplesOfHelpWork) {
  for (const std::string example :
       {"ls --sort used", "ls --arch sm_90a --unused-days 30 --json", "stat", "verify", "pins",
        "prune --max-bytes 2G --dry-run", "prune --max-bytes 512M --max-files 5000",
        "prune --max-age-days 90 --json", "verify --set-aside"}) {
    const std::string command = example.substr(0, example.find(' '));
    EXPECT_NE(text(command + " --help").find("  chord-cache " + example), std::string::npos)
        << example;
    (void)text(example);
  }
}

}  // namespace
}  // namespace chord::tools_test
