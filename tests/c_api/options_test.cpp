// From the options struct to a handle: what is passed on, what is refused by name, who hears the
// log.
#include <mutex>
#include <vector>

#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

// The error of a create with these options.
std::string refusal(const chord_options_t& options) {
  OwnedHandle handle;
  EXPECT_EQ(chord_create(&options, handle.out()), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(static_cast<chord_handle_t>(handle), nullptr);
  return chord_last_error()->message;
}

TEST(Options, AnEnumThatIsNoneIsRefusedByName) {
  const auto refused = [](auto field, const char* text) {
    chord_options_t options = chord_options_init();
    set_raw(options.*field, 77);
    EXPECT_TRUE(contains(refusal(options), text)) << chord_last_error()->message;
  };
  refused(&chord_options_t::policy, "`options.policy` is 77 (0 to 1 are known)");
  refused(&chord_options_t::jit, "`options.jit` is 77 (1 to 3 are known)");
  refused(&chord_options_t::log_level, "`options.log_level` is 77 (1 to 5 are known)");
  refused(&chord_options_t::signatures, "`options.signatures` is 77 (1 to 2 are known)");
  refused(&chord_options_t::compile_at, "`options.compile_at` is 77 (1 to 2 are known)");
  refused(&chord_options_t::remote_write, "`options.remote_write` is 77 (1 to 2 are known)");
}

TEST(Options, ADeviceBelowMinusOneIsRefused) {
  chord_options_t options = chord_options_init();
  options.device = -2;
  EXPECT_TRUE(contains(refusal(options), "`options.device` is -2"));
}

TEST(Options, AWaitThatCanNotBeIsRefused) {
  for (const std::int64_t wait :
       {std::int64_t{-1}, INT64_MIN, std::int64_t{3'600'001}, INT64_MAX}) {
    chord_options_t options = chord_options_init();
    options.compile_wait_ms = wait;
    EXPECT_TRUE(contains(refusal(options),
                         "`options.compile_wait_ms` is " + std::to_string(wait) + " (1 to 3600000"))
        << chord_last_error()->message;
  }
}

TEST(Options, AFolderThatIsNullIsRefusedByItsIndex) {
  chord_options_t options = chord_options_init();
  const char* const folders[] = {"/tmp", nullptr};
  options.readonly_cache_dirs = folders;
  options.readonly_cache_dir_count = 2;
  EXPECT_TRUE(contains(refusal(options), "`options.readonly_cache_dirs[1]` is NULL"));
}

TEST(Options, FoldersWithoutAPointerAreRefused) {
  chord_options_t options = chord_options_init();
  options.readonly_cache_dir_count = 2;
  EXPECT_TRUE(contains(refusal(options), "`options.readonly_cache_dirs` is NULL"));
}

TEST(Options, WhatTheCoreRefusesArrivesWhole) {
  chord::testing::TemporaryFolder folder;
  const std::string cache = folder / "cache";
  chord_options_t options = chord_options_init();
  options.cache_dir = cache.c_str();
  options.max_cache_age_days = 1;
  options.remote = "";
  options.trusted_keys = "/no/such/keys";
  OwnedHandle handle;
  EXPECT_NE(chord_create(&options, handle.out()), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->message, "/no/such/keys"));
}

TEST(Options, OfNullAreTheDefaults) {
  OwnedHandle handle;
  REQUIRE_SUCCESS(chord_create(nullptr, handle.out()));
  EXPECT_NE(static_cast<chord_handle_t>(handle), nullptr);
}

TEST_F(CApiTest, CacheDirIsCopiedWithItsSize) {
  std::size_t needed = 0;
  REQUIRE_SUCCESS(chord_cache_dir(handle_, nullptr, 0, &needed));
  ASSERT_EQ(needed, (folder_ / "cache").size() + 1);
  std::vector<char> text(needed, '?');
  REQUIRE_SUCCESS(chord_cache_dir(handle_, text.data(), text.size(), &needed));
  EXPECT_EQ(std::string(text.data()), folder_ / "cache");
}

TEST_F(CApiTest, ABufferThatIsTooSmallIsRefusedWithTheSize) {
  char text[4] = "abc";
  std::size_t needed = 0;
  EXPECT_EQ(chord_cache_dir(handle_, text, sizeof text, &needed), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(needed, (folder_ / "cache").size() + 1);
  EXPECT_TRUE(contains(chord_last_error()->message, "`capacity` is 4 bytes"));
  EXPECT_STREQ(text, "abc");
}

struct Heard {
  std::mutex mutex;
  std::vector<std::pair<chord_log_level_t, std::string>> lines;
};

void hear(chord_log_level_t level, const char* text, void* user) {
  auto* heard = static_cast<Heard*>(user);
  const std::lock_guard lock(heard->mutex);
  heard->lines.emplace_back(level, text);
}

// A manifest that is not there is a warning, unless compiling is forbidden.
chord_options_t with_a_missing_manifest(Heard& heard, const std::string& cache,
                                        const std::string& manifest) {
  chord_options_t options = chord_options_init();
  options.cache_dir = cache.c_str();
  options.manifest = manifest.c_str();
  options.jit = CHORD_JIT_WARN;
  options.log = hear;
  options.log_user = &heard;
  return options;
}

TEST(Log, ReachesTheCallbackWithItsUserPointer) {
  const chord::testing::TemporaryFolder folder;
  const std::string cache = folder / "cache", manifest = folder / "manifest.json";
  Heard heard;
  const chord_options_t options = with_a_missing_manifest(heard, cache, manifest);
  OwnedHandle handle;
  REQUIRE_SUCCESS(chord_create(&options, handle.out()));
  ASSERT_EQ(heard.lines.size(), 1u);
  EXPECT_EQ(heard.lines[0].first, CHORD_LOG_WARN);
  EXPECT_TRUE(contains(heard.lines[0].second, manifest)) << heard.lines[0].second;
}

TEST(Log, SaysNothingBelowItsLevel) {
  const chord::testing::TemporaryFolder folder;
  const std::string cache = folder / "cache", manifest = folder / "manifest.json";
  Heard heard;
  chord_options_t options = with_a_missing_manifest(heard, cache, manifest);
  options.log_level = CHORD_LOG_ERROR;
  OwnedHandle handle;
  REQUIRE_SUCCESS(chord_create(&options, handle.out()));
  EXPECT_TRUE(heard.lines.empty());
}

TEST(Options, JitNeverMakesAMissingManifestAnError) {
  const chord::testing::TemporaryFolder folder;
  const std::string cache = folder / "cache", manifest = folder / "manifest.json";
  Heard heard;
  chord_options_t options = with_a_missing_manifest(heard, cache, manifest);
  options.jit = CHORD_JIT_NEVER;
  OwnedHandle handle;
  EXPECT_NE(chord_create(&options, handle.out()), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->message, manifest));
}

}  // namespace
}  // namespace chord::c_api_test
