// CHORD_W4A16_*: unset, empty, equal to the default, another value, garbage, one of a pair.
#include <map>

#include "heuristics/pins.h"
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Overrides> parse(const Variables& variables) {
  return parse_overrides([&](const char* variable) -> std::optional<std::string> {
    const auto found = variables.find(variable);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

GemmDescriptor prefill(std::int64_t rows) {
  return indexed("h200_prefill_ep8", 4096, 7168, 48, rows);
}

Decision solved(const GemmDescriptor& d, const Overrides& overrides = {}) {
  Result<Decision> decision = solve(d, overrides, Policy::published);
  EXPECT_TRUE(decision.ok()) << error_text(decision);
  return decision.ok() ? *decision : Decision{};
}

void expect_same(const Decision& a, const Decision& b) {
  EXPECT_EQ(a.descriptor, b.descriptor);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.origin, b.origin);
  ASSERT_EQ(a.reasons.size(), b.reasons.size());
  for (std::size_t i = 0; i < a.reasons.size(); ++i)
    EXPECT_EQ(a.reasons[i].text, b.reasons[i].text);
  EXPECT_EQ(a.rejected.size(), b.rejected.size());
}

TEST(Overrides, UnsetVariablesPinNothing) {
  const Result<Overrides> overrides = parse({});
  ASSERT_TRUE(overrides.ok());
  EXPECT_EQ(*overrides, Overrides{});
}

TEST(Overrides, EachVariablePinsItsField) {
  for (const PinField& field : kPublishedPins) {
    const int value = field.range.first + field.range.step;
    const Result<Overrides> overrides = parse({{field.variable, std::to_string(value)}});
    ASSERT_TRUE(overrides.ok()) << error_text(overrides);
    EXPECT_EQ(*overrides, pin(field.member, value)) << field.variable;
  }
}

TEST(Overrides, MalformedValuesAreErrorsThatNameTheVariable) {
  for (const PinField& field : kPublishedPins)
    for (const char* value :
         {"", " ", " 16", "16 ", "+16", "-16", "0x10", "1e2", "16.0", "16,16", "sixteen",
          "99999999999999999999", "0", "000", "4294967312", "1\n", "\xff"})
      EXPECT_REFUSED(parse({{field.variable, value}}), field.variable);
}

TEST(Overrides, ValuesOutsideTheirRangeAreErrorsThatNameTheVariable) {
  EXPECT_REFUSED(parse({{"CHORD_W4A16_BM", "12"}}), "CHORD_W4A16_BM=12", "multiple of 8 in 8..256");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_BM", "264"}}), "CHORD_W4A16_BM=264");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_BN", "100"}}), "CHORD_W4A16_BN=100");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_BK", "32"}}), "CHORD_W4A16_BK=32");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_CM", "3"}}), "CHORD_W4A16_CM=3");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_CN", "4"}}), "CHORD_W4A16_CN=4");
  EXPECT_REFUSED(parse({{"CHORD_W4A16_STAGES", "17"}}), "CHORD_W4A16_STAGES=17");
}

TEST(Overrides, EmptyIsNotUnset) {
  EXPECT_REFUSED(parse({{"CHORD_W4A16_BM", ""}}), "CHORD_W4A16_BM", "empty", "unset");
}

TEST(Overrides, OptionsOfCodeAreCheckedLikeVariables) {
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::block_m, 12), Policy::published),
                 "CHORD_W4A16_BM=12");
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::tile_m, 7), Policy::published), "tile_m=7");
}

TEST(Overrides, TheDefaultValueLeavesTheDecisionAsItIs) {
  for (const GemmDescriptor& d :
       {prefill(1), prefill(1024), prefill(20000), indexed("h200_tp8", 512, 7168, 384, 8192),
        indexed("blackwell_decode_ep8", 4096, 7168, 48, 400),
        indexed("h200_decode_ep8", 7168, 2048, 48, 160), masked(4096, 7168, 48, 16),
        masked(7168, 2048, 24, 200), contiguous(4096, 7168, 48, 384),
        indexed("h200_prefill_ep8", 320, 192, 8, 77)}) {
    const Decision plain = solved(d);
    const PublishedSchedule& s = plain.schedule;
    Overrides all;
    const auto check = [&](std::optional<int> Overrides::*field, int value) {
      expect_same(solved(d, pin(field, value)), plain);
      all.*field = value;
    };
    check(&Overrides::block_m, s.block_m);
    check(&Overrides::block_n, s.block_n);
    check(&Overrides::block_k, s.block_k);
    check(&Overrides::num_stages, s.num_stages);
    if (s.cluster_m) check(&Overrides::cluster_m, *s.cluster_m);
    if (s.cluster_n) check(&Overrides::cluster_n, *s.cluster_n);
    expect_same(solved(d, all), plain);
  }
}

TEST(Overrides, TheDefaultKernelFieldsLeaveTheDecisionAsItIs) {
  const Decision plain = solved(prefill(1024));
  Overrides overrides;
  overrides.tile_m = plain.kernel.tile_m;
  overrides.tile_n = plain.kernel.tile_n;
  overrides.stages = plain.kernel.stages;
  overrides.slices_per_stage = plain.kernel.slices_per_stage;
  overrides.dequantisation = plain.kernel.dequantisation;
  overrides.split = plain.kernel.split;
  expect_same(solved(prefill(1024), overrides), plain);
}

TEST(Overrides, AnotherValueIsTakenAndSaysSo) {
  const Decision decision = solved(prefill(1024), pin(&Overrides::block_m, 64));
  EXPECT_EQ(decision.schedule.block_m, 64);
  EXPECT_EQ(decision.kernel.block_m, 64);
  EXPECT_EQ(decision.origin, Origin::override_value);
  EXPECT_TRUE(has_reason(decision, "override"));
}

TEST(Overrides, BlockMAloneSolvesItsPartners) {
  EXPECT_EQ(solved(prefill(1024), pin(&Overrides::block_m, 16)).schedule.block_n, 128);
  EXPECT_EQ(solved(prefill(1024), pin(&Overrides::block_m, 16)).schedule.block_k, 256);
  EXPECT_EQ(solved(prefill(1024), pin(&Overrides::block_m, 48)).schedule.block_n, 256);
  EXPECT_EQ(solved(prefill(1024), pin(&Overrides::block_m, 48)).schedule.ctas_per_sm, 2);
  EXPECT_EQ(solved(prefill(1024), pin(&Overrides::block_m, 128)).schedule.ctas_per_sm, 1);
}

TEST(Overrides, BlockNAloneSolvesItsPartners) {
  const Decision decision = solved(prefill(1024), pin(&Overrides::block_n, 256));
  EXPECT_EQ(decision.schedule.block_n, 256);
  EXPECT_EQ(decision.schedule.block_m, solved(prefill(1024)).schedule.block_m);
}

TEST(Overrides, EveryBlockMIsLegalOnItsOwn) {
  for (int block_m = 8; block_m <= 256; block_m += 8)
    for (const GemmDescriptor& d :
         {prefill(1), prefill(3000), indexed("h200_prefill_ep8", 7168, 2048, 48, 9000),
          indexed("h200_tp8", 512, 7168, 384, 100), indexed("h200_tp8", 7168, 256, 384, 100),
          indexed("h200_decode_ep8", 4096, 7168, 48, 160),
          indexed("blackwell_decode_ep8", 4096, 7168, 48, 400),
          indexed("blackwell_decode_ep8", 7168, 2048, 48, 4000),
          indexed("h200_prefill_ep8", 64, 64, 8, 5), masked(4096, 7168, 48, 16),
          masked(7168, 2048, 48, 60), masked(64, 64, 8, 1), contiguous(4096, 7168, 48, 64),
          contiguous(7168, 2048, 48, 20000)}) {
      const Result<Decision> decision =
          solve(d, pin(&Overrides::block_m, block_m), Policy::published);
      ASSERT_TRUE(decision.ok()) << block_m << ": " << error_text(decision);
      EXPECT_EQ(decision->schedule.block_m, block_m);
      EXPECT_EQ(decision->kernel.block_m, block_m);
      if (decision->schedule.smem_bytes) {
        EXPECT_LE(*decision->schedule.smem_bytes, 232448);
      }
    }
}

TEST(Overrides, ClustersOfAnIndexedPlanAreErrorsThatNameTheVariable) {
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::cluster_m, 1), Policy::published),
                 "CHORD_W4A16_CM=1", "indexed");
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::cluster_n, 2), Policy::published),
                 "CHORD_W4A16_CN=2", "indexed");
}

TEST(Overrides, ClustersOfGroupedPlansArePinned) {
  const GemmDescriptor d = masked(4096, 7168, 48, 16);
  const Decision decision = solved(d, pin(&Overrides::cluster_m, 2));
  EXPECT_EQ(decision.schedule.cluster_m, 2);
  EXPECT_EQ(decision.schedule.cluster_n, 1);
  EXPECT_EQ(decision.origin, Origin::override_value);
}

TEST(Overrides, ImpossibleClustersAreErrorsThatNameTheVariable) {
  const GemmDescriptor d = masked(4096, 7168, 48, 16);
  EXPECT_REFUSED(
      solve(d, pin(&Overrides::cluster_n, 2, pin(&Overrides::cluster_m, 2)), Policy::published),
      "CHORD_W4A16_CM=2", "CHORD_W4A16_CN=2");
  GemmDescriptor odd = d;
  odd.num_sms = 131;
  EXPECT_REFUSED(solve(odd, pin(&Overrides::cluster_m, 2), Policy::published), "CHORD_W4A16_CM=2",
                 "131");
}

TEST(Overrides, WhatDoesNotFitSharedMemoryIsAnErrorThatNamesTheVariable) {
  EXPECT_REFUSED(
      solve(masked(4096, 7168, 48, 128), pin(&Overrides::num_stages, 16), Policy::published),
      "CHORD_W4A16_STAGES=16", "232448");
  Overrides large = pin(&Overrides::block_m, 256);
  large.block_n = 512;
  large.block_k = 512;
  EXPECT_REFUSED(solve(prefill(64), large, Policy::published), "CHORD_W4A16_BM=256",
                 "CHORD_W4A16_BN=512", "CHORD_W4A16_BK=512", "232448");
}

TEST(Overrides, BlocksThatDoNotDivideTheShapeAreErrorsThatNameTheVariable) {
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::block_n, 192), Policy::published),
                 "CHORD_W4A16_BN=192", "4096");
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::block_k, 320), Policy::published),
                 "CHORD_W4A16_BK=320", "7168");
}

TEST(Overrides, BothBlocksAbove128AreRefusedForGroupedPlans) {
  EXPECT_REFUSED(
      solve(masked(4096, 7168, 48, 16),
            pin(&Overrides::block_m, 136, pin(&Overrides::block_n, 256)), Policy::published),
      "CHORD_W4A16_BM=136", "CHORD_W4A16_BN=256", "both above 128");
}

TEST(Overrides, ThreeStagesOfASmallTileAreRefused) {
  EXPECT_REFUSED(
      solve(masked(4096, 7168, 48, 16), pin(&Overrides::num_stages, 3), Policy::published),
      "CHORD_W4A16_STAGES=3", "fewer than 4");
}

TEST(Overrides, ABlockMThatContradictsTheRoutingIsRefused) {
  GemmDescriptor d = prefill(1024);
  d.block_m = 32;
  EXPECT_REFUSED(solve(d, pin(&Overrides::block_m, 64), Policy::published), "CHORD_W4A16_BM=64",
                 "block_m 32");
  expect_same(solved(d, pin(&Overrides::block_m, 32)), solved(d));
}

TEST(Overrides, KernelFieldsAreSetByName) {
  Overrides overrides;
  for (const char* assignment : {"tile_m=32", "tile_n=256", "slices_per_stage=1", "stages=5",
                                 "dequantisation=ordinary", "split=even"})
    EXPECT_TRUE(set_kernel_field(overrides, assignment).ok()) << assignment;
  const Decision decision = solved(prefill(1024), overrides);
  EXPECT_EQ(decision.kernel.tile_m, 32);
  EXPECT_EQ(decision.kernel.tile_n, 256);
  EXPECT_EQ(decision.kernel.slices_per_stage, 1);
  EXPECT_EQ(decision.kernel.stages, 5);
  EXPECT_EQ(decision.kernel.dequantisation, abi::Dequantisation::ordinary);
  EXPECT_EQ(decision.kernel.split, abi::Split::even);
  EXPECT_EQ(decision.origin, Origin::override_value);
}

TEST(Overrides, WrongKernelFieldsAreErrorsThatNameThem) {
  Overrides overrides;
  EXPECT_REFUSED(set_kernel_field(overrides, "tile_n"), "tile_n", "'='");
  EXPECT_REFUSED(set_kernel_field(overrides, "tile_n="), "tile_n", "empty");
  EXPECT_REFUSED(set_kernel_field(overrides, "tile_n=two"), "tile_n=two");
  EXPECT_REFUSED(set_kernel_field(overrides, "block_m=16"), "block_m", "tile_m");
  EXPECT_REFUSED(set_kernel_field(overrides, "dequantisation=none"), "none");
  EXPECT_REFUSED(set_kernel_field(overrides, ""), "'='");
  EXPECT_EQ(overrides, Overrides{});
}

TEST(Overrides, KernelFieldsThatCanNotRunAreRefusedWithTheNumbers) {
  Overrides wide = pin(&Overrides::tile_m, 64);
  wide.tile_n = 512;
  wide.mainloop = abi::Mainloop::mma;
  EXPECT_REFUSED(solve(prefill(1024), wide, Policy::published), "tile_m=64", "tile_n=512",
                 "at most 80", "accumulators");
  Overrides wide_wgmma = pin(&Overrides::tile_m, 176);
  wide_wgmma.mainloop = abi::Mainloop::wgmma;
  EXPECT_REFUSED(solve(prefill(16384), wide_wgmma, Policy::published), "mainloop=wgmma",
                 "tile_m=176", "at most 128", "accumulators");
  Overrides narrow = pin(&Overrides::widths, 4);
  narrow.tile_m = 24;
  narrow.mainloop = abi::Mainloop::wgmma;
  EXPECT_REFUSED(solve(prefill(1024), narrow, Policy::published), "widths=4",
                 "smallest width", "at least 8");
  Overrides form = pin(&Overrides::tile_m, 32);
  form.mainloop = abi::Mainloop::wgmma;
  form.dequantisation = abi::Dequantisation::accumulator;
  EXPECT_REFUSED(solve(prefill(1024), form, Policy::published), "fused or ordinary");
  GemmDescriptor blackwell = indexed("blackwell_decode_ep8", 4096, 7168, 48, 400);
  Overrides wgmma;
  wgmma.mainloop = abi::Mainloop::wgmma;
  EXPECT_REFUSED(solve(blackwell, wgmma, Policy::published), "wgmma", "sm_90a only");
  Overrides deep = pin(&Overrides::stages, 8);
  deep.tile_n = 512;
  deep.slices_per_stage = 4;
  EXPECT_REFUSED(solve(prefill(64), deep, Policy::published), "stages=8", "shared memory");
  EXPECT_REFUSED(solve(prefill(64), pin(&Overrides::tile_n, 384), Policy::published), "384");
}

}  // namespace
}  // namespace chord::heuristics
