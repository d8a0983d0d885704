// A cache folder, and what an Inspector tells of it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cache/inspect.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/folder_picture.h"

namespace chord::cache {

class InspectTest : public CacheTest {
 protected:
  Inspector inspector() {
    auto opened = Inspector::open(root(), files, clock);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  std::vector<EntrySummary> all() {
    std::vector<EntrySummary> entries;
    const Status status = inspector().for_each([&](const EntrySummary& entry, const Entry*) {
      entries.push_back(entry);
      return true;
    });
    EXPECT_TRUE(status.ok()) << status.error().message();
    return entries;
  }
  EntrySummary only() {
    const std::vector<EntrySummary> entries = all();
    EXPECT_EQ(entries.size(), 1u);
    return entries.empty() ? EntrySummary{} : entries.front();
  }
  std::string path_of(const CacheKey& key) const { return layout().entry(key.name); }
  void put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    for (std::filesystem::path at = std::filesystem::path(path).parent_path();
         at.string().size() > root().size(); at = at.parent_path())
      std::filesystem::permissions(at, std::filesystem::perms::owner_all);
  }
  std::map<std::string, std::string> picture() const { return testing::picture_of(root()); }
  // Two keys whose names start with the same `digits` digits.
  static std::pair<CacheKey, CacheKey> alike(std::size_t digits) {
    std::map<std::string, CacheKey> seen;
    for (int i = 0;; ++i) {
      const CacheKey key = make_key("alike " + std::to_string(i));
      const auto [at, is_new] = seen.emplace(key.name.substr(0, digits), key);
      if (!is_new) return {at->second, key};
    }
  }
};

}  // namespace chord::cache
