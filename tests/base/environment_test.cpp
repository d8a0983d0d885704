// Options from code, environment and default; the choice of the cache folder.
#include "src/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "src/base/posix_file_system.h"
#include "tests/support/temporary_folder.h"

namespace chord::base {
namespace {

using Variables = std::map<std::string, std::string>;

EnvironmentLookup lookup_of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Result<Overrides> no_overrides(const EnvironmentLookup&) { return Overrides{}; }

Result<Options> resolve(Variables variables, Options from_code = {}) {
  return resolve_options(std::move(from_code), lookup_of(std::move(variables)), no_overrides);
}

std::string error_of(const Result<Options>& result) {
  return result.ok() ? "no error" : result.error().message();
}

TEST(Environment, TellsUnsetFromEmpty) {
  ::setenv("CHORD_TEST_EMPTY", "", 1);
  ::unsetenv("CHORD_TEST_UNSET");
  EXPECT_EQ(environment("CHORD_TEST_EMPTY"), std::optional<std::string>(""));
  EXPECT_EQ(environment("CHORD_TEST_UNSET"), std::nullopt);
  EXPECT_EQ(process_environment()("CHORD_TEST_EMPTY"), std::optional<std::string>(""));
}

TEST(ResolveOptions, NothingSetGivesTheDefaults) {
  const Result<Options> options = resolve({});
  ASSERT_TRUE(options.ok()) << error_of(options);
  EXPECT_EQ(options->cache_dir, std::nullopt);
  EXPECT_EQ(options->readonly_cache_dirs, std::vector<std::string>{});
  EXPECT_EQ(options->nvrtc_library, std::nullopt);
  EXPECT_EQ(options->log_level, LogLevel::warn);
  EXPECT_EQ(options->jit, JitPolicy::allow);
  EXPECT_EQ(options->overrides, Overrides{});
}

TEST(ResolveOptions, TakesEveryVariable) {
  const Result<Options> options = resolve({{"CHORD_CACHE_DIR", "/a//b/"},
                                           {"CHORD_CACHE_READONLY_DIRS", "/c::/d"},
                                           {"CHORD_NVRTC_LIBRARY", "/no/such/libnvrtc.so"},
                                           {"CHORD_LOG", "debug"},
                                           {"CHORD_JIT", "never"}});
  ASSERT_TRUE(options.ok()) << error_of(options);
  EXPECT_EQ(options->cache_dir, "/a/b");
  EXPECT_EQ(options->readonly_cache_dirs, (std::vector<std::string>{"/c", "/d"}));
  EXPECT_EQ(options->nvrtc_library, "/no/such/libnvrtc.so");
  EXPECT_EQ(options->log_level, LogLevel::debug);
  EXPECT_EQ(options->jit, JitPolicy::never);
}

TEST(ResolveOptions, CodeComesBeforeTheEnvironment) {
  Options from_code;
  from_code.cache_dir = "/code";
  from_code.readonly_cache_dirs = std::vector<std::string>{};
  from_code.log_level = LogLevel::error;
  from_code.jit = JitPolicy::warn;
  from_code.overrides.emplace().block_m = 16;
  const Result<Options> options = resolve({{"CHORD_CACHE_DIR", ""},
                                           {"CHORD_CACHE_READONLY_DIRS", "/c"},
                                           {"CHORD_LOG", "garbage"},
                                           {"CHORD_JIT", "garbage"}},
                                          from_code);
  ASSERT_TRUE(options.ok()) << error_of(options);
  EXPECT_EQ(options->cache_dir, "/code");
  EXPECT_TRUE(options->readonly_cache_dirs->empty());
  EXPECT_EQ(options->log_level, LogLevel::error);
  EXPECT_EQ(options->jit, JitPolicy::warn);
  EXPECT_EQ(options->overrides->block_m, 16);
}

TEST(ResolveOptions, GarbageIsAnErrorThatNamesTheVariable) {
  for (const char* variable : {"CHORD_LOG", "CHORD_JIT"})
    for (const char* value : {"", "garbage", "WARN", " warn"}) {
      const std::string error = error_of(resolve({{variable, value}}));
      EXPECT_NE(error.find(std::string(variable) + "=" + value), std::string::npos) << error;
      EXPECT_NE(error.find("warn"), std::string::npos) << "the choices are named: " << error;
    }
  EXPECT_NE(error_of(resolve({{"CHORD_CACHE_DIR", ""}})).find("CHORD_CACHE_DIR"),
            std::string::npos);
}

TEST(ResolveOptions, AnErrorOfTheOverridesIsPassedOn) {
  const Result<Options> options =
      resolve_options({}, lookup_of({}), [](const EnvironmentLookup&) -> Result<Overrides> {
        return Error{ErrorCode::invalid_argument, "CHORD_W4A16_BM", "garbage", ""};
      });
  EXPECT_NE(error_of(options).find("CHORD_W4A16_BM"), std::string::npos);
}

TEST(ResolveOptions, RelativeFoldersBecomeAbsolute) {
  const Result<Options> options = resolve({{"CHORD_CACHE_DIR", "cache"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->cache_dir, (std::filesystem::current_path() / "cache").string());
}

TEST(ResolveOptions, TakesTheVariablesOfTheFleet) {
  const Result<Options> options = resolve({{"CHORD_CACHE_MAX_BYTES", "512M"},
                                           {"CHORD_CACHE_MAX_FILES", "300"},
                                           {"CHORD_CACHE_MAX_AGE_DAYS", "90"},
                                           {"CHORD_REMOTE", "redis://host"},
                                           {"CHORD_REMOTE_WRITE", "1"},
                                           {"CHORD_REMOTE_DEADLINE_MS", "250"},
                                           {"CHORD_SIGNATURES", "required"},
                                           {"CHORD_TRUSTED_KEYS", "/a"},
                                           {"CHORD_SIGNING_KEY", "/b"},
                                           {"CHORD_MANIFEST", "/c"},
                                           {"CHORD_COMPILE", "farm"},
                                           {"CHORD_FARM_DEADLINE_MS", "5000"}});
  ASSERT_TRUE(options.ok()) << error_of(options);
  EXPECT_EQ(options->max_cache_bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(options->max_cache_files, 300u);
  EXPECT_EQ(options->max_cache_age_days, 90);
  EXPECT_EQ(options->remote, "redis://host");
  EXPECT_EQ(options->remote_write, true);
  EXPECT_EQ(options->remote_deadline_ms, 250);
  EXPECT_EQ(options->signatures, SignaturePolicy::required);
  EXPECT_EQ(options->trusted_keys, "/a");
  EXPECT_EQ(options->signing_key, "/b");
  EXPECT_EQ(options->manifest, "/c");
  EXPECT_EQ(options->compile_at, CompileAt::farm);
  EXPECT_EQ(options->farm_deadline_ms, 5000);
}

TEST(ResolveOptions, WithoutThemAMachineIsOnItsOwn) {
  const Result<Options> options = resolve({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->max_cache_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(options->max_cache_files, 20000u);
  EXPECT_EQ(options->max_cache_age_days, 0);
  EXPECT_EQ(options->remote, "");
  EXPECT_EQ(options->remote_write, false);
  EXPECT_EQ(options->signatures, SignaturePolicy::accept_local);
  EXPECT_EQ(options->compile_at, CompileAt::local);
}

TEST(ResolveOptions, WrongNumbersAndNamesAreNamed) {
  for (const auto& [variable, value] : Variables{{"CHORD_CACHE_MAX_BYTES", "2GB"},
                                                 {"CHORD_CACHE_MAX_FILES", "0"},
                                                 {"CHORD_CACHE_MAX_FILES", "-1"},
                                                 {"CHORD_CACHE_MAX_AGE_DAYS", "1e3"},
                                                 {"CHORD_REMOTE_WRITE", "yes"},
                                                 {"CHORD_REMOTE_DEADLINE_MS", "0"},
                                                 {"CHORD_FARM_DEADLINE_MS", "99999999999"},
                                                 {"CHORD_SIGNATURES", "optional"},
                                                 {"CHORD_COMPILE", "never"}}) {
    const Result<Options> options = resolve({{variable, value}});
    ASSERT_FALSE(options.ok()) << variable;
    EXPECT_NE(error_of(options).find(variable + "=" + value), std::string::npos)
        << error_of(options);
  }
}

TEST(ResolveOptions, CodeGoesBeforeTheEnvironmentAndIsCheckedAsWell) {
  Options from_code;
  from_code.remote = "";
  from_code.max_cache_files = 5;
  const Result<Options> options =
      resolve({{"CHORD_REMOTE", "redis://host"}, {"CHORD_CACHE_MAX_FILES", "7"}}, from_code);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->remote, "");
  EXPECT_EQ(options->max_cache_files, 5u);
  from_code.max_cache_files = 0;
  EXPECT_FALSE(resolve({}, from_code).ok());
}

TEST(ResolveSecrets, ComeFromTheEnvironmentOrFromFilesAndAreNotRepeated) {
  chord::testing::TemporaryFolder folder;
  PosixFileSystem files;
  std::ofstream(folder / "password") << "from a file\nsecond line\n";
  const auto secrets = [&](Variables variables) -> Result<Options> {
    Options options;
    CHORD_TRY(resolve_secrets(options, lookup_of(std::move(variables)), files));
    return options;
  };
  EXPECT_EQ(secrets({{"CHORD_REMOTE_PASSWORD", "direct"}})->remote_password, "direct");
  EXPECT_EQ(secrets({{"CHORD_REMOTE_PASSWORD_FILE", folder / "password"}})->remote_password,
            "from a file");
  EXPECT_EQ(secrets({{"CHORD_REMOTE_TOKEN_FILE", folder / "password"}})->remote_token,
            "from a file");
  const Result<Options> missing = secrets({{"CHORD_REMOTE_TOKEN_FILE", "/no/such"}});
  EXPECT_NE(error_of(missing).find("CHORD_REMOTE_TOKEN_FILE=/no/such"), std::string::npos);
  std::ofstream(folder / "empty") << "\n";
  EXPECT_FALSE(secrets({{"CHORD_REMOTE_PASSWORD_FILE", folder / "empty"}}).ok());
}

class CacheFolderTest : public ::testing::Test {
 protected:
  CacheFolder choose(Variables variables, Options options = {}) {
    const auto folder = choose_cache_folder(options, lookup_of(std::move(variables)), files_);
    EXPECT_TRUE(folder.ok());
    return *folder;
  }

  testing::TemporaryFolder home_;
  PosixFileSystem files_;
};

TEST_F(CacheFolderTest, OfTheOptionsComesFirst) {
  Options options;
  options.cache_dir = "/asked";
  const CacheFolder folder = choose({{"XDG_CACHE_HOME", "/xdg"}, {"HOME", home_.path()}}, options);
  EXPECT_EQ(folder.path, "/asked");
  EXPECT_TRUE(folder.asked_for);
}

TEST_F(CacheFolderTest, ThenXdgThenHome) {
  EXPECT_EQ(choose({{"XDG_CACHE_HOME", "/xdg"}, {"HOME", home_.path()}}).path, "/xdg/chord");
  const std::string in_home = home_ / ".cache/chord";
  EXPECT_EQ(choose({{"HOME", home_.path()}}).path, in_home);
  EXPECT_EQ(choose({{"XDG_CACHE_HOME", ""}, {"HOME", home_.path()}}).path, in_home);
  EXPECT_EQ(choose({{"XDG_CACHE_HOME", "relative"}, {"HOME", home_.path()}}).path, in_home);
  EXPECT_FALSE(choose({{"HOME", home_.path()}}).asked_for);
}

TEST_F(CacheFolderTest, IsNoneWithoutAUsableHomeAndSaysWhy) {
  for (const Variables& variables :
       {Variables{}, Variables{{"HOME", ""}}, Variables{{"HOME", "/"}}, Variables{{"HOME", "//"}},
        Variables{{"HOME", "relative"}}, Variables{{"HOME", home_ / "missing"}}}) {
    const CacheFolder folder = choose(variables);
    EXPECT_EQ(folder.path, std::nullopt);
    EXPECT_NE(folder.why_none.find("HOME"), std::string::npos);
  }
}

TEST_F(CacheFolderTest, ThatWasAskedForAndCanBeNoneIsAnErrorThatNamesIt) {
  std::ofstream(home_ / "file") << "x";
  for (const std::string& path : {home_ / "file", home_ / "file/below"}) {
    Options options;
    options.cache_dir = path;
    const auto folder = choose_cache_folder(options, lookup_of({}), files_);
    ASSERT_FALSE(folder.ok());
    EXPECT_NE(folder.error().message().find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace chord::base
