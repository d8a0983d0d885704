// Keys: what changes them and, as important, what does not.
#include "src/cubin/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "cache/key.h"
#include "heuristics/solver.h"

namespace chord::cubin {
namespace {

constexpr const char* kCompiler = "NVRTC 13.0.88";

GemmDescriptor decode(std::int64_t experts = 48, std::int64_t rows = 160) {
  GemmDescriptor descriptor;
  descriptor.profile = "h200_decode_ep8";
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = experts;
  descriptor.rows = rows;
  return descriptor;
}

Recipe recipe_of(const GemmDescriptor& descriptor, const Overrides& overrides = {}) {
  const auto decision = heuristics::solve(descriptor, overrides, Policy::measured);
  EXPECT_TRUE(decision.ok()) << decision.error().message();
  const auto recipe = gemm_recipe(*decision);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message();
  return *recipe;
}

std::string key_name(const GemmDescriptor& descriptor, const Overrides& overrides = {}) {
  return key_of(recipe_of(descriptor, overrides), kCompiler).name;
}

TEST(Recipe, ExpertsAreNoPartOfTheKey) {
  std::set<std::string> names;
  for (const int experts : {12, 24, 48, 49, 50, 56, 96, 384, 385})
    names.insert(key_name(decode(experts, 3 * experts)));
  EXPECT_EQ(names.size(), 1u);
}

TEST(Recipe, ShapeFamilyBlockAndCompilerAre) {
  const std::string base = key_name(decode());
  GemmDescriptor down = decode();
  down.n = 7168;
  down.k = 2048;
  EXPECT_NE(key_name(down), base);
  EXPECT_NE(key_name(decode(48, 500)), base) << "another block_m";
  EXPECT_NE(key_of(recipe_of(decode()), "NVRTC 13.0.99").name, base);
}

TEST(Recipe, ThreeArchitecturesGiveThreeKeys) {
  std::set<std::string> names;
  for (const Architecture arch :
       {Architecture::sm_90a, Architecture::sm_100a, Architecture::sm_103a}) {
    GemmDescriptor descriptor = decode();
    descriptor.arch = arch;
    if (is_blackwell(arch)) descriptor.profile = "blackwell_decode_ep8";
    names.insert(key_name(descriptor));
  }
  EXPECT_EQ(names.size(), 3u);
}

TEST(Recipe, AnOverrideEqualToTheDefaultKeepsTheKey) {
  const std::string base = key_name(decode());
  EXPECT_EQ(key_name(decode(), {.block_m = 8}), base);
  EXPECT_EQ(key_name(decode(), {.block_n = 256}), base);
  EXPECT_EQ(key_name(decode(), {.num_stages = 4}), base);
  EXPECT_NE(key_name(decode(), {.block_m = 16}), base);
}

TEST(Recipe, AnotherValueOfAnyOverrideIsAnotherKey) {
  GemmDescriptor masked = decode();
  masked.family = Family::grouped_masked;
  masked.profile.clear();
  masked.rows = 0;
  masked.max_m = 256;
  masked.expected_m = 16;
  struct Case {
    std::optional<int> Overrides::*field;
    int value;
    bool grouped;
  };
  std::set<std::string> names{key_name(decode()), key_name(masked)};
  const std::vector<Case> cases{
      {&Overrides::block_m, 16, false},  {&Overrides::block_n, 128, false},
      {&Overrides::block_k, 128, false}, {&Overrides::num_stages, 3, false},
      {&Overrides::block_m, 64, true},   {&Overrides::block_n, 128, true},
      {&Overrides::block_k, 64, true},   {&Overrides::cluster_m, 2, true},
      {&Overrides::cluster_n, 2, true},  {&Overrides::num_stages, 5, true}};
  for (const Case& one : cases) {
    Overrides overrides;
    overrides.*one.field = one.value;
    names.insert(key_name(one.grouped ? masked : decode(), overrides));
  }
  EXPECT_EQ(names.size(), cases.size() + 2);
}

TEST(Recipe, KeyTextHoldsEveryFieldThatShapesTheCode) {
  const CacheKey key = key_of(recipe_of(decode()), kCompiler);
  const auto fields = cache::key_fields(key.text);
  ASSERT_TRUE(fields.ok());
  std::set<std::string> labels;
  for (const auto& [label, value] : *fields) labels.insert(label);
  for (const char* label :
       {"n", "k", "routing", "block_m", "tile_m", "tile_n", "stages", "dequantisation", "split",
        "arch", "device_digest", "options", "compiler", "source"})
    EXPECT_TRUE(labels.contains(label)) << label;
}

TEST(Recipe, NoPathAndNoHostReachesTheKey) {
  const CacheKey key = key_of(recipe_of(decode()), kCompiler);
  EXPECT_EQ(key.text.find(CHORD_SOURCE_DIR), std::string::npos);
  EXPECT_EQ(key.text.find(CHORD_BINARY_DIR), std::string::npos);
}

TEST(Recipe, GemmAndPackKernelsDependOnDifferentFiles) {
  const Recipe gemm = recipe_of(decode());
  const auto pack = pack_recipe(Architecture::sm_90a, CodeSource::words, ScaleSource::row_major);
  ASSERT_TRUE(pack.ok());
  const auto has = [](const Recipe& recipe, std::string_view part) {
    return std::any_of(recipe.files.begin(), recipe.files.end(), [&](const auto& file) {
      return file.name.find(part) != std::string_view::npos;
    });
  };
  EXPECT_TRUE(has(gemm, "mainloop/mma"));
  EXPECT_FALSE(has(gemm, "kernels/pack/"));
  EXPECT_TRUE(has(*pack, "kernels/pack/"));
  EXPECT_FALSE(has(*pack, "mainloop/mma"));
}

TEST(Recipe, AnyOrderOnAnyThreadGivesTheSameKeys) {
  std::vector<GemmDescriptor> descriptors;
  for (int i = 0; i < 100; ++i) descriptors.push_back(decode(12 + i, 40 + 37 * i));
  const auto keys_of = [](const std::vector<GemmDescriptor>& all) {
    std::set<std::string> names;
    for (const GemmDescriptor& descriptor : all) names.insert(key_name(descriptor));
    return names;
  };
  const std::set<std::string> want = keys_of(descriptors);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(descriptors.begin(), descriptors.end(), random);
    std::vector<std::set<std::string>> got(round % 2 == 0 ? 1 : 8);
    {
      std::vector<std::jthread> threads;
      for (auto& names : got)
        threads.emplace_back([&names, &keys_of, descriptors] { names = keys_of(descriptors); });
    }
    for (const auto& names : got) ASSERT_EQ(names, want);
  }
}

}  // namespace
}  // namespace chord::cubin
