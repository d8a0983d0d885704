// The entry text: every field written, the promises of the host asserted where the kernel is
// compiled.
#include "src/source/gemm_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chord/fields.h"

namespace chord::source {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr abi::Problem kProblem{.n = 4096, .k = 7168, .routing = abi::RoutingKind::grouped_masked};

TEST(GemmSource, WritesEveryFieldOfScheduleAndProblem) {
  const KernelSchedule schedule{};
  const std::string text = gemm_source(schedule, kProblem);
  int fields = 0;
  const auto expect_field = [&](const char* field, auto) {
    ++fields;
    EXPECT_TRUE(contains(text, fmt::format("    .{} = ", field))) << field << "\n" << text;
  };
  for_each_field(schedule, expect_field);
  for_each_field(kProblem, expect_field);
  EXPECT_EQ(fields, 12 + 3) << "a field that for_each_field lacks is no part of the key";
}

TEST(GemmSource, WritesValuesOfEnumsByName) {
  KernelSchedule schedule{};
  schedule.dequantisation = abi::Dequantisation::accumulator;
  schedule.split = abi::Split::even;
  const std::string text = gemm_source(schedule, kProblem);
  EXPECT_TRUE(contains(text, ".dequantisation = Dequantisation::accumulator,"));
  EXPECT_TRUE(contains(text, ".split = Split::even,"));
  EXPECT_TRUE(contains(text, ".routing = RoutingKind::grouped_masked,"));
}

TEST(GemmSource, AssertsWhatALaunchRequests) {
  KernelSchedule schedule{};
  schedule.stages = 4;
  schedule.tile_n = 256;
  const std::string text = gemm_source(schedule, kProblem);
  EXPECT_TRUE(contains(
      text, fmt::format("static_assert({} == shared_bytes(kSchedule));", shared_bytes(schedule))));
  EXPECT_TRUE(
      contains(text, fmt::format("static_assert({} == threads(kSchedule));", threads(schedule))));
  EXPECT_TRUE(contains(text, fmt::format("__launch_bounds__({}, 1)", threads(schedule))));
}

TEST(GemmSource, DefinesTheOneEntry) {
  const std::string text = gemm_source({}, kProblem);
  EXPECT_TRUE(contains(text, "extern \"C\" __global__"));
  EXPECT_TRUE(contains(text, "chord_kernel(const __grid_constant__ GemmParams params)"));
}

// Experts, rows and pointers are run-time arguments: shards of one shape share the text.
TEST(GemmSource, DoesNotDependOnExpertsOrRows) {
  GemmDescriptor one, other;
  one.n = other.n = 4096;
  one.k = other.k = 7168;
  one.experts = 12;
  other.experts = 385;
  other.rows = 99;
  EXPECT_EQ(gemm_source({}, problem_of(one)), gemm_source({}, problem_of(other)));
}

TEST(GemmSource, DiffersWithEveryField) {
  const std::string base = gemm_source({}, kProblem);
  KernelSchedule changed{};
  changed.block_m = 16;
  EXPECT_NE(gemm_source(changed, kProblem), base);
  changed = {};
  changed.slices_per_stage = 1;
  EXPECT_NE(gemm_source(changed, kProblem), base);
  abi::Problem problem = kProblem;
  problem.n = 4160;
  EXPECT_NE(gemm_source({}, problem), base);
}

TEST(GemmSource, TakesAnotherMainloopAndIsOtherwiseTheSame) {
  const std::string base = gemm_source({}, kProblem);
  std::string other = gemm_source({}, kProblem, {"a/b.cuh", "c::Loop"});
  for (const std::string part : {"#include \"a/b.cuh\"\n", ", c::Loop<kSchedule>"}) {
    const std::size_t at = other.find(part);
    ASSERT_NE(at, std::string::npos) << part << other;
    other.erase(at, part.size());
  }
  EXPECT_EQ(other, base);
}

TEST(GemmSource, NameHasNoPath) {
  EXPECT_EQ(gemm_source_name({}, kProblem), "grouped_masked_4096x7168_block_m_8.cu");
}

}  // namespace
}  // namespace chord::source
