// Includes point down, and what comes from outside comes in at one place.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/structure/floors.h"

namespace chord::structure {
namespace {

bool is_refused(const char* path, const char* name, bool quoted = true) {
  return !include_fault(path, {name, quoted, 1}).empty();
}

TEST(Floors, RefuseAnUpwardInclude) {
  EXPECT_TRUE(is_refused("cache/entry.cpp", "src/base/log.h"));
  EXPECT_TRUE(is_refused("src/cuda/device.cpp", "src/launch/launch.h"));
  EXPECT_TRUE(is_refused("include/chord/engine.h", "src/engine.h"));
  EXPECT_TRUE(is_refused("src/explain.cpp", "tools/cli.h"));
}

TEST(Floors, RefuseHostHeadersInDeviceText) {
  EXPECT_TRUE(is_refused("tools/bench/device/ablation.cuh", "src/launch/launch.h"));
  EXPECT_TRUE(is_refused("tools/bench/device/ablation.cuh", "chord/engine.h"));
}

TEST(Floors, RefuseASibling) {
  EXPECT_TRUE(is_refused("cache/key.cpp", "heuristics/solver.h"));
  EXPECT_TRUE(is_refused("heuristics/solver.cpp", "kernels/embedded.h"));
  EXPECT_TRUE(is_refused("src/module/module.cpp", "src/cubin/compiler.h"));
}

TEST(Floors, AllowWhatLiesBelow) {
  EXPECT_FALSE(is_refused("cache/key.cpp", "cache/key.h"));
  EXPECT_FALSE(is_refused("cache/key.cpp", "chord/status.h"));
  EXPECT_FALSE(is_refused("src/engine.cpp", "heuristics/solver.h"));
  EXPECT_FALSE(is_refused("src/launch/launch.cpp", "src/module/module.h"));
  EXPECT_FALSE(is_refused("tools/bench/device/ablation.cuh", "kernels/mainloop/mma.cuh"));
}

TEST(Floors, KeepTheOutsideOut) {
  EXPECT_TRUE(is_refused("include/chord/engine.h", "fmt/format.h", false));
  EXPECT_TRUE(is_refused("include/chord/abi/scalar.h", "cstdint", false));
  EXPECT_TRUE(is_refused("kernels/ptx/mma.cuh", "cuda_bf16.h", false));
  EXPECT_TRUE(is_refused("src/cuda/driver_api.h", "cuda.h", false));
  EXPECT_TRUE(is_refused("src/engine.cpp", "spdlog/spdlog.h", false));
  EXPECT_FALSE(is_refused("src/base/log.cpp", "spdlog/spdlog.h", false));
}

TEST(Tree, EveryIncludePointsDown) {
  int seen = 0;
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp()) continue;
    for (const Include& include : includes_of(file)) {
      ++seen;
      EXPECT_EQ(include_fault(file.path, include), "")
          << file.path << ":" << include.line << " includes " << include.name;
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(Tree, EveryQuotedIncludeExists) {
  const std::filesystem::path root = CHORD_SOURCE_DIR;
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp()) continue;
    for (const Include& include : includes_of(file)) {
      if (!include.quoted) continue;
      const bool exists = std::filesystem::exists(root / include.name) ||
                          std::filesystem::exists(root / "include" / include.name);
      EXPECT_TRUE(exists) << file.path << ":" << include.line << " includes " << include.name;
    }
  }
}

}  // namespace
}  // namespace chord::structure
