// Tiles whose depth is shared by several CTAs: one contributor, two, and many, which take different
// ways to the owner; always the same bits.
#include <fmt/format.h>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

// With one column tile per expert, 6 experts are many CTAs per tile and 100 are about one.
constexpr std::int64_t kExpertCounts[] = {1, 6, 50, 70, 100, 120};
constexpr std::int64_t kMostExperts = 120;

std::vector<KernelSpec> every_tile_height() {
  std::vector<KernelSpec> specs;
  for (const int tile_m : {8, 16, 24, 32, 40}) {
    KernelSpec spec{.n = 512, .k = 3584};
    spec.pins.tile_m = tile_m;
    spec.pins.split = abi::Split::even;
    specs.push_back(spec);
  }
  return specs;
}

// Eight units deep: 66 experts on 132 CTAs are two pieces per tile, and few launches to check.
KernelSpec shallow() {
  KernelSpec spec{.n = 512, .k = 1024};
  spec.pins.split = abi::Split::even;
  return spec;
}

const bool kRegistered[] = {register_kernels(every_tile_height),
                            register_kernels([] { return std::vector{shallow()}; })};

// Fewer rows than a tile, as many, and more.
std::vector<std::int64_t> rows_around(std::int64_t tile_m, std::int64_t experts) {
  std::vector<std::int64_t> counts;
  for (std::int64_t e = 0; e < experts; ++e) counts.push_back(1 + (e * 7 + 3) % (tile_m + 5));
  return counts;
}

class GpuSplit : public GpuTest {};

TEST_F(GpuSplit, OneTwoAndManyContributorsGiveTheSameBitsEveryTime) {
  const std::vector<KernelSpec> specs = every_tile_height();
  REQUIRE_VALUE(const Weights weights, make_weights(kMostExperts, specs.front()));
  for (const KernelSpec& spec : specs) {
    REQUIRE_VALUE(const PreparedKernel kernel, prepare(spec));
    for (const std::int64_t experts : kExpertCounts) {
      const std::string what = fmt::format("tile_m {}, {} experts", *spec.pins.tile_m, experts);
      REQUIRE_VALUE(GemmRun run,
                    GemmRun::make(rig(), kernel, weights,
                                  routing_of(spec, rows_around(*spec.pins.tile_m, experts)),
                                  {.seed = 7, .experts = experts}));
      REQUIRE_VALUE(const std::vector<std::uint16_t> first, run.bits());
      for (int i = 1; i < 10; ++i) {
        REQUIRE_VALUE(const std::vector<std::uint16_t> again, run.bits());
        ASSERT_TRUE(again == first) << what << ": run " << i << " differs";
      }
      expect_right(run, what);
    }
  }
}

TEST_F(GpuSplit, APartialIsFetchedAndAdded) {
  const KernelSpec spec = shallow();
  REQUIRE_VALUE(const Weights weights, make_weights(66, spec));
  for (const std::int64_t experts : {50, 66}) {
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, rows_around(8, experts)),
                                        {.seed = 7, .experts = experts}));
    expect_right(run, fmt::format("{} experts", experts));
  }
}

}  // namespace
}  // namespace chord::gpu_test
