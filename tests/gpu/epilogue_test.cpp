// Fused epilogues: SwiGLU in gate/up, the top-k weight in down; every main loop, every family,
// tiles that are split and tiles that are not, against the reference of checkpoint rows.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

struct Tile {
  abi::Mainloop mainloop;
  int tile_m, tile_n, widths, slices;
};

// Of SwiGLU: two strips of a warp and four; by mma also one.
const Tile kSwigluTiles[] = {
    {abi::Mainloop::mma, 16, 128, 1, 2},    {abi::Mainloop::mma, 16, 512, 1, 2},
    {abi::Mainloop::mma, 40, 512, 1, 2},    {abi::Mainloop::wgmma, 24, 512, 3, 2},
    {abi::Mainloop::wgmma, 104, 256, 4, 2}, {abi::Mainloop::wgmma, 88, 256, 4, 1}};
const Tile kWeightedTiles[] = {
    {abi::Mainloop::mma, 16, 128, 1, 2},     {abi::Mainloop::mma, 40, 512, 1, 2},
    {abi::Mainloop::wgmma, 16, 128, 1, 2},   {abi::Mainloop::wgmma, 40, 512, 3, 2},
    {abi::Mainloop::wgmma, 128, 256, 4, 1},  {abi::Mainloop::resident, 48, 128, 3, 4},
    {abi::Mainloop::resident, 208, 64, 3, 4}};

KernelSpec spec_of(const Tile& tile, Family family, Epilogue epilogue, abi::Split split) {
  KernelSpec spec{.family = family, .n = 576, .k = 448, .block_m = 8, .epilogue = epilogue};
  if (tile.mainloop == abi::Mainloop::resident) spec.k = tile.slices * 64;
  spec.pins.mainloop = tile.mainloop;
  spec.pins.tile_m = tile.tile_m;
  spec.pins.tile_n = tile.tile_n;
  spec.pins.widths = tile.widths;
  spec.pins.slices_per_stage = tile.slices;
  spec.pins.split = split;
  return spec;
}

std::vector<KernelSpec> specs_of(Epilogue epilogue) {
  std::vector<KernelSpec> specs;
  const auto add = [&](const auto& tiles) {
    for (const Tile& tile : tiles)
      for (const Family family : kFamilies)
        for (const abi::Split split : {abi::Split::even, abi::Split::automatic})
          specs.push_back(spec_of(tile, family, epilogue, split));
  };
  if (epilogue == Epilogue::swiglu)
    add(kSwigluTiles);
  else
    add(kWeightedTiles);
  return specs;
}

const bool kRegistered = register_kernels([] {
  std::vector<KernelSpec> all = specs_of(Epilogue::swiglu);
  for (const KernelSpec& spec : specs_of(Epilogue::weighted)) all.push_back(spec);
  return all;
});

std::string text_of(const KernelSpec& spec) {
  return fmt::format("{} {} tile {}x{} {} {}", name(*spec.pins.mainloop), name(spec.family),
                     *spec.pins.tile_m, *spec.pins.tile_n, name(*spec.pins.split),
                     name(spec.epilogue));
}

class GpuEpilogue : public GpuTest {
 protected:
  void expect_all_right(Epilogue epilogue) {
    const std::vector<std::int64_t> counts{8, 0, 3, 130, 1, 17, 40, 64};
    std::map<std::int64_t, Weights> weights;  // by K
    for (const KernelSpec& spec : specs_of(epilogue)) {
      if (!weights.contains(spec.k)) {
        REQUIRE_VALUE(Weights made, make_weights(8, spec));
        weights.emplace(spec.k, std::move(made));
      }
      REQUIRE_VALUE(const PreparedKernel kernel, prepare(spec));
      EXPECT_EQ(kernel.facts().local_bytes, 0) << text_of(spec);
      expect_right(spec, weights.at(spec.k), routing_of(spec, counts), text_of(spec));
    }
  }
};

TEST_F(GpuEpilogue, SwigluOfEveryMainloopAndFamily) { expect_all_right(Epilogue::swiglu); }
TEST_F(GpuEpilogue, WeightsOfEveryMainloopAndFamily) { expect_all_right(Epilogue::weighted); }

TEST_F(GpuEpilogue, SplitTilesGiveTheSameBitsEveryTime) {
  for (const Epilogue epilogue : {Epilogue::swiglu, Epilogue::weighted})
    for (const KernelSpec& spec : specs_of(epilogue)) {
      if (spec.family != Family::indexed || spec.pins.split != abi::Split::even) continue;
      REQUIRE_VALUE(const Weights weights, make_weights(2, spec));
      REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, {9, 30})));
      REQUIRE_VALUE(const std::vector<std::uint16_t> first, run.bits());
      for (int i = 0; i < 10; ++i) {
        REQUIRE_VALUE(const std::vector<std::uint16_t> again, run.bits());
        ASSERT_TRUE(again == first) << text_of(spec);
      }
    }
}

// A weight in the other order, weights of rows that nobody uses or that are missing.
TEST_F(GpuEpilogue, WhatDoesNotBelongTogetherIsRefused) {
  const auto expect_refused = [&](const GemmRun& run, const char* text) {
    const Status refused = run.launch(stream());
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message().find(text), std::string::npos) << refused.error().message();
  };
  const KernelSpec spec = specs_of(Epilogue::swiglu).front();
  REQUIRE_VALUE(const Weights weights, make_weights(2, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, {9, 30})));
  run.arguments.weight.shape.row_order = RowOrder::plain;
  expect_refused(run, "plain order");
  run.arguments.weight.shape.row_order = RowOrder::gate_up;
  run.arguments.row_weights = static_cast<const float*>(run.workspace.pointer());
  expect_refused(run, "row_weights are given");

  const KernelSpec weighted = specs_of(Epilogue::weighted).front();
  REQUIRE_VALUE(const Weights plain, make_weights(2, weighted));
  REQUIRE_VALUE(GemmRun down, make_run(weighted, plain, routing_of(weighted, {9, 30})));
  const float* const row_weights = std::exchange(down.arguments.row_weights, nullptr);
  expect_refused(down, "row_weights is a null pointer");
  down.arguments.row_weights = row_weights;
  down.arguments.weight.shape.row_order = RowOrder::gate_up;
  expect_refused(down, "interleaved");
}

}  // namespace
}  // namespace chord::gpu_test
