// The wgmma kernels: every tile, every routing kind, every width of a set, waves of whole tiles and
// tiles that many CTAs share, run-time counts on both sides of every edge.
#include <fmt/format.h>

#include <random>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

struct Tile {
  int tile_m, tile_n, widths, width_step, slices;
};

constexpr Tile kTiles[] = {
    {16, 128, 1, 8, 1},  {40, 256, 3, 8, 2},  {64, 256, 3, 16, 2},  {24, 512, 3, 8, 2},
    {40, 512, 2, 16, 1}, {104, 256, 4, 8, 2}, {128, 256, 2, 48, 1}, {256, 128, 2, 128, 1},
};

KernelSpec spec_of(const Tile& tile, Family family, std::int64_t n, std::int64_t k,
                   int block_m = 8) {
  KernelSpec spec{.family = family, .n = n, .k = k, .block_m = block_m};
  spec.pins.mainloop = abi::Mainloop::wgmma;
  spec.pins.tile_m = tile.tile_m;
  spec.pins.tile_n = tile.tile_n;
  spec.pins.widths = tile.widths;
  spec.pins.width_step = tile.width_step;
  spec.pins.slices_per_stage = tile.slices;
  return spec;
}

std::vector<KernelSpec> every_tile(std::int64_t n, std::int64_t k) {
  std::vector<KernelSpec> specs;
  for (const Family family : kFamilies)
    for (const Tile& tile : kTiles) {
      const KernelSpec spec = spec_of(tile, family, n, k);
      if (is_possible(spec)) specs.push_back(spec);
    }
  return specs;
}

std::vector<KernelSpec> odd_shapes() { return every_tile(576, 448); }
std::vector<KernelSpec> wide_shapes() { return every_tile(2048, 512); }

const bool kRegistered[] = {register_kernels(odd_shapes), register_kernels(wide_shapes)};

std::string text_of(const KernelSpec& spec, const KernelSchedule& s) {
  return fmt::format("{} tile {}x{} widths {} by {} slices {} stages {}", name(spec.family),
                     s.tile_m, s.tile_n, s.widths, s.width_step, s.slices_per_stage, s.stages);
}

class GpuWgmma : public GpuTest {
 protected:
  void expect_all_right(const std::vector<KernelSpec>& specs,
                        const std::vector<std::int64_t>& counts) {
    REQUIRE_VALUE(const Weights weights,
                  make_weights(static_cast<std::int64_t>(counts.size()), specs.front()));
    for (const KernelSpec& spec : specs) {
      REQUIRE_VALUE(const PreparedKernel kernel, prepare(spec));
      const KernelSchedule& schedule = kernel.decision().kernel;
      ASSERT_EQ(schedule.mainloop, abi::Mainloop::wgmma);
      const std::string what = text_of(spec, schedule);
      EXPECT_EQ(kernel.facts().shared_bytes, abi::shared_bytes(schedule)) << what;
      EXPECT_EQ(kernel.facts().local_bytes, 0) << what;
      REQUIRE_VALUE(GemmRun run,
                    GemmRun::make(rig(), kernel, weights, routing_of(spec, counts), {}));
      expect_right(run, what);
    }
  }
};

// Fewer tiles than CTAs: every one is split along K.
TEST_F(GpuWgmma, FewRows) { expect_all_right(odd_shapes(), {1, 8, 0, 9, 3}); }

// Counts at and beside the edges of widths and tiles.
TEST_F(GpuWgmma, EdgesOfWidths) {
  expect_all_right(odd_shapes(), {16, 17, 0, 40, 41, 64, 113, 128, 129, 176, 177, 256, 257, 353});
}

// Hundreds of tiles: waves, and shares of what is left.
TEST_F(GpuWgmma, WavesOfWholeTiles) {
  std::mt19937 random(3);
  std::vector<std::int64_t> counts;
  for (int expert = 0; expert < 40; ++expert) counts.push_back(random() % 400);
  expect_all_right(wide_shapes(), counts);
}

// One expert has nearly everything.
TEST_F(GpuWgmma, OneBusyExpert) { expect_all_right(wide_shapes(), {1, 6000, 0, 2, 70}); }

// The same bits every time, whoever is first.
TEST_F(GpuWgmma, SameBitsEveryTime) {
  std::vector<std::int64_t> counts;
  for (int expert = 0; expert < 24; ++expert) counts.push_back(40 + 9 * expert);
  const std::vector<KernelSpec> specs = wide_shapes();
  REQUIRE_VALUE(const Weights weights,
                make_weights(static_cast<std::int64_t>(counts.size()), specs.front()));
  for (const KernelSpec& spec : specs) {
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, counts)));
    REQUIRE_VALUE(const std::vector<std::uint16_t> first, run.bits());
    for (int again = 0; again < 5; ++again) {
      REQUIRE_VALUE(const std::vector<std::uint16_t> bits, run.bits());
      EXPECT_EQ(bits, first) << name(spec.family) << " tile " << *spec.pins.tile_m;
    }
  }
}

}  // namespace
}  // namespace chord::gpu_test
