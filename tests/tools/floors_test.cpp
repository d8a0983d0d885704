// The arithmetic behind the floors that chord-explain prints.
#include <gtest/gtest.h>

#include "src/explain_model.h"

namespace chord {
namespace {

Explanation floors_of(const GemmDescriptor& descriptor) {
  Explanation explanation;
  explanation.decision.descriptor = descriptor;
  fill_floors(explanation);
  return explanation;
}

GemmDescriptor gate_up(std::int64_t rows) {
  GemmDescriptor descriptor;
  descriptor.num_sms = 132;
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = 48;
  descriptor.rows = rows;
  return descriptor;
}

TEST(Floors, IndexedRowsReachTheExpectedNumberOfExperts) {
  EXPECT_EQ(floors_of(gate_up(1)).active_experts, 1);
  EXPECT_EQ(floors_of(gate_up(48)).active_experts, 31);   // 48 * (1 - (47/48)^48) = 30.5
  EXPECT_EQ(floors_of(gate_up(160)).active_experts, 46);  // 46.3
  EXPECT_EQ(floors_of(gate_up(100000)).active_experts, 48);
}

TEST(Floors, GroupedRowsReachTheExpertsTheyAreToldOf) {
  GemmDescriptor contiguous = gate_up(20);
  contiguous.family = Family::grouped_contiguous;
  EXPECT_EQ(floors_of(contiguous).active_experts, 20);
  GemmDescriptor masked = gate_up(0);
  masked.family = Family::grouped_masked;
  masked.max_m = 8;
  masked.expected_m = 16;  // only a hint: a slab holds 8
  EXPECT_EQ(floors_of(masked).active_experts, 48);
  EXPECT_EQ(floors_of(masked).padded_rows, 48 * 8);
}

TEST(Floors, PaddingIsCountedInTilesOfEight) {
  GemmDescriptor contiguous = gate_up(48 * 9);
  contiguous.family = Family::grouped_contiguous;
  EXPECT_EQ(floors_of(contiguous).padded_rows, 48 * 16);
  EXPECT_DOUBLE_EQ(floors_of(contiguous).padding_waste, 1 - 9.0 / 16);
  contiguous.rows = 48 * 16;
  EXPECT_DOUBLE_EQ(floors_of(contiguous).padding_waste, 0);
}

TEST(Floors, DecodeIsBoundByWeights) {
  const Explanation e = floors_of(gate_up(160));
  // 46 experts x 4096 x 7168 x 0.5625 B, and 160 rows of 2 x (4096 + 7168) B.
  const double bytes = 46 * 4096.0 * 7168 * 0.5625 + 160 * 2.0 * (4096 + 7168);
  EXPECT_NEAR(e.memory_floor_us, bytes / 4.27e6, 1e-6);
  EXPECT_GT(e.memory_floor_us, e.tensor_floor_us);
  EXPECT_NEAR(e.predicted_us, e.memory_floor_us + 3.1, 1e-9);
}

TEST(Floors, PrefillIsBoundByTheTensorPipe) {
  const Explanation e = floors_of(gate_up(16384));
  EXPECT_NEAR(e.tensor_floor_us, 2.0 * 16384 * 4096 * 7168 / 680e6, 1e-6);
  EXPECT_GT(e.tensor_floor_us, e.memory_floor_us);
  EXPECT_GE(e.predicted_us, e.tensor_floor_us);
}

TEST(Floors, ASliceOfAGpuMultipliesSlower) {
  GemmDescriptor slice = gate_up(16384);
  slice.num_sms = 66;
  EXPECT_NEAR(floors_of(slice).tensor_floor_us, 2 * floors_of(gate_up(16384)).tensor_floor_us,
              1e-6);
}

TEST(Floors, NothingToDoTakesNoTimeButTheLaunch) {
  const Explanation e = floors_of(gate_up(0));
  EXPECT_EQ(e.active_experts, 0);
  EXPECT_EQ(e.padding_waste, 0);
  EXPECT_EQ(e.memory_floor_us, 0);
  EXPECT_NEAR(e.predicted_us, 3.1, 1e-9);
}

TEST(Floors, DataSheetFiguresAreNotCalledMeasured) {
  EXPECT_TRUE(ceilings_of(Architecture::sm_90a).measured);
  EXPECT_FALSE(ceilings_of(Architecture::sm_100a).measured);
  EXPECT_FALSE(ceilings_of(Architecture::sm_103a).measured);
}

}  // namespace
}  // namespace chord
