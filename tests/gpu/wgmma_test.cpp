// The kernels that use wgmma: every tile, every routing kind, every width of a set, waves of whole
// tiles and tiles that many CTAs share, run-time counts on both sides of every edge.
#include <fmt/format.h>

#include <random>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

struct Tile {
  int tile_m, tile_n, widths, width_step, slices;
};

// Tiles of a main loop, and the shapes they are tried on: one with columns and slices left over,
// one that fills every CTA.
struct Kind {
  const char* name;
  abi::Mainloop mainloop;
  std::vector<Tile> tiles;
  std::int64_t odd_n, odd_k;
  std::int64_t wide_n, wide_k;
};

const Kind kKinds[] = {
    {"wgmma",
     abi::Mainloop::wgmma,
     {{16, 128, 1, 8, 1},
      {40, 256, 3, 8, 2},
      {64, 256, 3, 16, 2},
      {24, 512, 3, 8, 2},
      {40, 512, 2, 16, 1},
      {104, 256, 4, 8, 2},
      {128, 256, 2, 48, 1},
      {256, 128, 2, 128, 1}},
     576,
     448,
     2048,
     512},
    {"resident4",
     abi::Mainloop::resident,
     {{8, 128, 1, 8, 4},
      {40, 128, 3, 8, 4},
      {104, 128, 4, 8, 4},
      {208, 64, 3, 16, 4},
      {16, 64, 2, 8, 4}},
     576,
     256,
     7168,
     256},
    {"resident3",
     abi::Mainloop::resident,
     {{72, 128, 3, 8, 3}, {128, 64, 2, 48, 3}},
     576,
     192,
     2048,
     192},
    {"resident2",
     abi::Mainloop::resident,
     {{104, 128, 3, 8, 2}, {160, 64, 3, 16, 2}},
     576,
     128,
     2048,
     128},
    {"resident1",
     abi::Mainloop::resident,
     {{64, 128, 3, 16, 1}, {256, 64, 2, 128, 1}},
     576,
     64,
     2048,
     64},
};

KernelSpec spec_of(const Kind& kind, const Tile& tile, Family family, std::int64_t n,
                   std::int64_t k) {
  KernelSpec spec{.family = family, .n = n, .k = k, .block_m = 8};
  spec.pins.mainloop = kind.mainloop;
  spec.pins.tile_m = tile.tile_m;
  spec.pins.tile_n = tile.tile_n;
  spec.pins.widths = tile.widths;
  spec.pins.width_step = tile.width_step;
  spec.pins.slices_per_stage = tile.slices;
  return spec;
}

std::vector<KernelSpec> every_tile(const Kind& kind, std::int64_t n, std::int64_t k) {
  std::vector<KernelSpec> specs;
  for (const Family family : kFamilies)
    for (const Tile& tile : kind.tiles) {
      const KernelSpec spec = spec_of(kind, tile, family, n, k);
      if (is_possible(spec)) specs.push_back(spec);
    }
  return specs;
}

std::vector<KernelSpec> odd_shapes(const Kind& kind) {
  return every_tile(kind, kind.odd_n, kind.odd_k);
}
std::vector<KernelSpec> wide_shapes(const Kind& kind) {
  return every_tile(kind, kind.wide_n, kind.wide_k);
}

const bool kRegistered = register_kernels([] {
  std::vector<KernelSpec> all;
  for (const Kind& kind : kKinds) {
    for (const KernelSpec& spec : odd_shapes(kind)) all.push_back(spec);
    for (const KernelSpec& spec : wide_shapes(kind)) all.push_back(spec);
  }
  return all;
});

std::string text_of(const KernelSpec& spec, const KernelSchedule& s) {
  return fmt::format("{} {} tile {}x{} widths {} by {} slices {} stages {}", name(s.mainloop),
                     name(spec.family), s.tile_m, s.tile_n, s.widths, s.width_step,
                     s.slices_per_stage, s.stages);
}

class GpuWgmma : public GpuTest, public ::testing::WithParamInterface<Kind> {
 protected:
  void expect_all_right(const std::vector<KernelSpec>& specs,
                        const std::vector<std::int64_t>& counts) {
    ASSERT_FALSE(specs.empty());
    REQUIRE_VALUE(const Weights weights,
                  make_weights(static_cast<std::int64_t>(counts.size()), specs.front()));
    for (const KernelSpec& spec : specs) {
      REQUIRE_VALUE(const PreparedKernel kernel, prepare(spec));
      const KernelSchedule& schedule = kernel.decision().kernel;
      ASSERT_EQ(schedule.mainloop, GetParam().mainloop);
      const std::string what = text_of(spec, schedule);
      EXPECT_EQ(kernel.facts().shared_bytes, abi::shared_bytes(schedule)) << what;
      EXPECT_EQ(kernel.facts().local_bytes, 0) << what;
      REQUIRE_VALUE(GemmRun run,
                    GemmRun::make(rig(), kernel, weights, routing_of(spec, counts), {}));
      expect_right(run, what);
    }
  }
};

// Fewer tiles than CTAs: every one is split, along K or along the columns.
TEST_P(GpuWgmma, FewRows) { expect_all_right(odd_shapes(GetParam()), {1, 8, 0, 9, 3}); }

// Counts at and beside the edges of widths and tiles.
TEST_P(GpuWgmma, EdgesOfWidths) {
  expect_all_right(odd_shapes(GetParam()),
                   {16, 17, 0, 40, 41, 64, 113, 128, 129, 176, 177, 256, 257, 353});
}

// Hundreds of tiles: waves, and shares of what is left.
TEST_P(GpuWgmma, ManyTiles) {
  std::mt19937 random(3);
  std::vector<std::int64_t> counts;
  for (int expert = 0; expert < 40; ++expert) counts.push_back(random() % 400);
  expect_all_right(wide_shapes(GetParam()), counts);
}

// One expert has nearly everything.
TEST_P(GpuWgmma, OneBusyExpert) { expect_all_right(wide_shapes(GetParam()), {1, 6000, 0, 2, 70}); }

// The same bits every time, whoever is first.
TEST_P(GpuWgmma, SameBitsEveryTime) {
  std::vector<std::int64_t> counts;
  for (int expert = 0; expert < 24; ++expert) counts.push_back(40 + 9 * expert);
  const std::vector<KernelSpec> specs = wide_shapes(GetParam());
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

// TP8 down of Kimi K2.5 on both sides of 2^17 routed rows, and at twice as many.
class GpuManyRows : public GpuTest {};

std::vector<KernelSpec> tp8_down() {
  return {spec_of(kKinds[1], {208, 64, 3, 16, 4}, Family::indexed, 7168, 256)};
}
const bool kManyRowsRegistered = register_kernels(tp8_down);

TEST_F(GpuManyRows, AroundAPowerOfTwo) {
  constexpr int kExperts = 384;
  const KernelSpec spec = tp8_down().front();
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, spec));
  for (const std::int64_t rows : {131071, 131072, 131073, 262144}) {
    std::mt19937 random(static_cast<unsigned>(rows));
    std::vector<std::int64_t> counts(kExperts, rows / kExperts);
    counts.back() += rows % kExperts;
    for (int i = 0; i + 1 < kExperts; i += 2) {
      const auto moved = static_cast<std::int64_t>(random() % 300);
      counts[i] -= moved;
      counts[i + 1] += moved;
    }
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, counts)));
    expect_right(run, fmt::format("{} rows", rows));
  }
}

INSTANTIATE_TEST_SUITE_P(Mainloops, GpuWgmma, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace chord::gpu_test
