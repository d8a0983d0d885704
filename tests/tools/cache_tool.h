// A cache folder that was filled as the library fills it, and chord-cache run on it as a process.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/cache/cache_fixture.h"
#include "tests/support/folder_picture.h"
#include "tests/tools/process.h"

namespace chord::tools_test {

using cache::make_entry;
using cache::make_key;

constexpr std::uint32_t kPlainUser = 4711;

inline cache::Manifest manifest_of(const std::string& label, const CacheKey& key,
                                   const std::string& label_of_key) {
  cache::Manifest manifest;
  manifest.label = label;
  manifest.keys.push_back({key.name, label_of_key, "sm_90a", "", 0});
  return manifest;
}

class CacheToolTest : public cache::CacheTest {
 protected:
  Outcome run(const std::string& arguments) const { return run_words(words(arguments)); }
  Outcome run_words(const std::vector<std::string>& arguments, const Environment& more = {}) const {
    Environment environment = more;
    environment["CHORD_CACHE_DIR"] = root();
    return run_tool("chord-cache", arguments, environment);
  }
  // What a command says with --json. On success standard error must be silent; so it must be with
  // --json in any case.
  Json json(const std::string& arguments, int exit_code = 0) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    EXPECT_TRUE(outcome.json().is_object()) << arguments << "\n" << outcome.out;
    return outcome.json();
  }
  std::string text(const std::string& arguments, int exit_code = 0) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  // An error in both of its forms; the three parts, joined.
  std::string refused(const std::string& arguments, int exit_code = 2) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err.rfind("error: ", 0), 0u) << arguments << "\n" << outcome.err;
    const Json error = json(arguments, exit_code)["error"];
    EXPECT_TRUE(error.is_object()) << arguments;
    std::string all;
    for (const char* part : {"asked", "found", "help"}) all += error.value(part, "") + "\n";
    return all;
  }

  // One that runs as a user without rights, where the tests run as root.
  Outcome run_as_plain_user(const std::string& arguments) const {
    if (::geteuid() != 0) return run(arguments);
    std::vector<std::string> all{"--reuid=4711", "--regid=4711", "--clear-groups",
                                 tool_path("chord-cache")};
    for (const std::string& argument : words(arguments)) all.push_back(argument);
    return run_program("/usr/bin/setpriv", all, {{"CHORD_CACHE_DIR", root()}});
  }
  // Gives the folder and everything in it to a user; `mode_of_folders` replaces 0700.
  void hand_over(std::uint32_t user, ::mode_t mode_of_folders, ::mode_t mode_of_files) {
    ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
    std::vector<std::string> paths{root()};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
      paths.push_back(entry.path().string());
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
      if (::geteuid() == 0) {
        ASSERT_EQ(::lchown(path->c_str(), user, user), 0);
      }
      const bool is_folder = std::filesystem::is_directory(*path);
      ASSERT_EQ(::chmod(path->c_str(), is_folder ? mode_of_folders : mode_of_files), 0);
    }
  }

  std::map<std::string, std::string> picture() const { return testing::picture_of(root()); }
  std::string path_of(const CacheKey& key) const { return layout().entry(key.name); }
  bool is_there(const CacheKey& key) const { return std::filesystem::exists(path_of(key)); }
  // As if nobody had used it for so long.
  void age(const CacheKey& key, int days) {
    ASSERT_EQ(real.touch(path_of(key), ::time(nullptr) * std::int64_t{1'000'000'000} -
                                           days * std::int64_t{86400} * 1'000'000'000)
                  .error_number,
              0);
  }
  void damage(const CacheKey& key) {
    std::filesystem::resize_file(path_of(key), std::filesystem::file_size(path_of(key)) - 1);
  }
  std::vector<CacheKey> fill_some(int count, std::size_t cubin_bytes = 1000) {
    std::vector<CacheKey> keys;
    for (int i = 0; i < count; ++i) keys.push_back(make_key("source " + std::to_string(i)));
    fill(keys, cubin_bytes);
    return keys;
  }
  // A file that lists these keys, as chord-prewarm writes it.
  std::string write_manifest(const std::string& label, const std::vector<CacheKey>& keys) {
    cache::Manifest manifest;
    manifest.label = label;
    manifest.compiler = "NVRTC 13.0.88";
    for (const CacheKey& key : keys)
      manifest.keys.push_back({key.name, "kernel of " + label, "sm_90a", {}, 0});
    const std::string path = folder / (cache::content_name(label) + ".json");
    write_file(path, cache::to_json(manifest));
    return path;
  }
};

}  // namespace chord::tools_test
