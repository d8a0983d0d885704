// chord-test-gpu. With --prewarm-only it compiles every kernel of the tests into the cache and runs
// none of them; that needs a compiler and no GPU. --longest-test=SECONDS: after how long a test
// counts as hung (under a memory checker everything is slower). --every-lane-releases: kernels of
// pinned fields in the form whose order racecheck can follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "src/weights/pack_source.h"
#include "tests/gpu/fixture.h"
#include "tests/gpu/service_test.h"

namespace chord::gpu_test {
namespace {

constexpr CodeSource kCodeSources[] = {CodeSource::codes_i32, CodeSource::codes_u8,
                                       CodeSource::words, CodeSource::words_k_major};
constexpr ScaleSource kScaleSources[] = {ScaleSource::row_major, ScaleSource::k_major};

Result<bench::PrewarmCount> prewarm(const Engine& engine, bench::DeviceCode& code,
                                    Architecture arch) {
  CHORD_TRY(const std::vector<Decision> decisions, registered_kernels(engine, arch));
  std::vector<cubin::Recipe> recipes;
  for (const Decision& decision : decisions) {
    CHORD_TRY(cubin::Recipe recipe, cubin::gemm_recipe(decision));
    recipes.push_back(std::move(recipe));
  }
  for (const CodeSource codes : kCodeSources)
    for (const ScaleSource scales : kScaleSources) {
      CHORD_TRY(cubin::Recipe recipe, cubin::pack_recipe(arch, codes, scales));
      recipes.push_back(std::move(recipe));
    }
  for (const layer::LayerKernel kernel : layer::kLayerKernels) {
    CHORD_TRY(cubin::Recipe recipe, cubin::layer_recipe(arch, kernel));
    recipes.push_back(std::move(recipe));
  }
  return code.prewarm(arch, std::move(recipes));
}

Status prewarm_only() {
  CHORD_TRY(const Engine engine, Engine::create({}));
  CHORD_TRY(const std::unique_ptr<bench::DeviceCode> code, bench::DeviceCode::create(engine));
  CHORD_TRY(const bench::PrewarmCount count, prewarm(engine, *code, Architecture::sm_90a));
  fmt::print("{} kernels, {} compiled now, in {}\n", count.kernels, count.compiles,
             engine.cache_dir());
  return {};
}

// On a GPU: what the cache lacks is compiled on all cores before the first test, not one after the
// other inside them.
class PrewarmedCache : public ::testing::Environment {
  void SetUp() override {
    const Result<Rig*>& rig = shared_rig();
    if (!rig.ok()) return;
    const auto count = prewarm((*rig)->engine, *(*rig)->code, (*rig)->device.arch);
    EXPECT_TRUE(count.ok()) << count.error().message();
    if (count.ok())
      fmt::print("{}: {} kernels, {} compiled now\n", (*rig)->device.name, count->kernels,
                 count->compiles);
    std::fflush(stdout);
  }
  void TearDown() override { close_rig(); }
};

}  // namespace
}  // namespace chord::gpu_test

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--prewarm-only") == 0) {
    const chord::Status done = chord::gpu_test::prewarm_only();
    if (!done.ok()) fmt::print(stderr, "error: {}\n", done.error().message());
    return done.ok() ? 0 : 1;
  }
  if (argc == 2 && std::strcmp(argv[1], chord::gpu_test::kForkFlag) == 0)
    return chord::gpu_test::fork_after_explain();
  ::testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kLongest = "--longest-test=";
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with(kLongest))
      chord::gpu_test::set_longest_test(std::chrono::seconds(std::atoi(argv[i] + kLongest.size())));
    if (std::strcmp(argv[i], "--every-lane-releases") == 0)
      chord::gpu_test::set_release(chord::abi::Release::every_lane);
  }
  ::testing::AddGlobalTestEnvironment(new chord::gpu_test::PrewarmedCache);
  return RUN_ALL_TESTS();
}
