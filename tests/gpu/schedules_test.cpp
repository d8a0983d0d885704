// Every schedule that a planner could choose computes what the reference does, and asks for the
// shared memory that the kernel lays out.
#include <fmt/format.h>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

std::vector<KernelSpec> every_block_m() {
  std::vector<KernelSpec> specs;
  for (int block_m = 8; block_m <= 256; block_m += 8)
    specs.push_back({.n = 576, .k = 192, .block_m = block_m});
  return specs;
}

std::vector<KernelSpec> every_stage_count() {
  std::vector<KernelSpec> specs;
  for (int stages = 2; stages <= 8; ++stages)
    for (int slices = 1; slices <= 4; ++slices) {
      KernelSpec spec{.n = 320, .k = 448};
      spec.pins.tile_n = 256;
      spec.pins.stages = stages;
      spec.pins.slices_per_stage = slices;
      if (is_possible(spec)) specs.push_back(spec);
    }
  return specs;
}

std::vector<KernelSpec> every_tile() {
  std::vector<KernelSpec> specs;
  for (const int tile_n : {128, 256, 512})
    for (int tile_m = 8; tile_m <= 64; tile_m += 8) {
      KernelSpec spec{.n = 576, .k = 192, .block_m = 16};
      spec.pins.tile_m = tile_m;
      spec.pins.tile_n = tile_n;
      if (is_possible(spec)) specs.push_back(spec);
    }
  return specs;
}

std::vector<KernelSpec> every_form_and_split() {
  std::vector<KernelSpec> specs;
  for (const auto form : {abi::Dequantisation::fused, abi::Dequantisation::ordinary,
                          abi::Dequantisation::accumulator})
    for (const auto split : {abi::Split::whole_tiles, abi::Split::even, abi::Split::automatic}) {
      KernelSpec spec{.n = 320, .k = 7168};
      spec.pins.dequantisation = form;
      spec.pins.split = split;
      specs.push_back(spec);
    }
  return specs;
}

const bool kRegistered[] = {register_kernels(every_block_m), register_kernels(every_stage_count),
                            register_kernels(every_tile), register_kernels(every_form_and_split)};

std::string text_of(const KernelSchedule& s) {
  return fmt::format("block_m {} tile {}x{} slices {} stages {} {} {}", s.block_m, s.tile_m,
                     s.tile_n, s.slices_per_stage, s.stages, name(s.dequantisation), name(s.split));
}

class GpuSchedules : public GpuTest {
 protected:
  // Counts around the tile's edges, an expert without rows among them.
  void expect_all_right(const std::vector<KernelSpec>& specs, const WeightOptions& options = {}) {
    ASSERT_FALSE(specs.empty());
    REQUIRE_VALUE(const Weights weights, make_weights(6, specs.front(), options));
    for (const KernelSpec& spec : specs) {
      REQUIRE_VALUE(const PreparedKernel kernel, prepare(spec));
      const KernelSchedule& schedule = kernel.decision().kernel;
      const std::string what = text_of(schedule);
      EXPECT_EQ(kernel.facts().shared_bytes, abi::shared_bytes(schedule)) << what;
      EXPECT_EQ(kernel.facts().threads, abi::threads(schedule)) << what;
      const std::int64_t block_m = spec.block_m;
      const std::vector<std::int64_t> counts{1, block_m, 0, block_m + 1, 2 * block_m - 1, 3};
      REQUIRE_VALUE(GemmRun run,
                    GemmRun::make(rig(), kernel, weights, routing_of(spec, counts), {}));
      expect_right(run, what);
    }
  }
};

TEST_F(GpuSchedules, EveryBlockM) { expect_all_right(every_block_m()); }
TEST_F(GpuSchedules, EveryStageCount) { expect_all_right(every_stage_count()); }
TEST_F(GpuSchedules, EveryTile) { expect_all_right(every_tile()); }

TEST_F(GpuSchedules, EveryDequantisationAndSplit) { expect_all_right(every_form_and_split()); }

TEST_F(GpuSchedules, EveryDequantisationWithAllCodesAndWideScales) {
  expect_all_right(every_form_and_split(),
                   {.seed = 3, .fifteen_codes = false, .scales = bench::ScaleKind::wide});
}

}  // namespace
}  // namespace chord::gpu_test
