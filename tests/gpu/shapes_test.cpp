// Shapes: N that no tile divides, odd numbers of k64 slices, tiny layers, many experts, many rows.
#include <fmt/format.h>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

std::vector<KernelSpec> odd_shapes() {
  std::vector<KernelSpec> specs;
  for (const Family family : kFamilies)
    for (const auto& [n, k] : std::vector<std::pair<int, int>>{
             {64, 64}, {64, 192}, {64, 320}, {192, 192}, {320, 64}, {320, 320}, {576, 192}})
      specs.push_back({.family = family, .n = n, .k = k});
  return specs;
}

KernelSpec small(Family family) { return {.family = family, .n = 128, .k = 128}; }

std::vector<KernelSpec> other_kernels() {
  std::vector<KernelSpec> specs;
  for (const Family family : kFamilies) specs.push_back(small(family));
  for (const Family family : kFamilies) specs.push_back({.family = family, .n = 64, .k = 64});
  specs.push_back({.n = 256, .k = 256});
  specs.push_back({.n = 256, .k = 128});
  specs.push_back({.n = 512, .k = 7168, .block_m = 64});
  specs.push_back({.family = Family::grouped_contiguous, .n = 7168, .k = 64});
  return specs;
}

const bool kRegistered[] = {register_kernels(odd_shapes), register_kernels(other_kernels)};

class GpuShapes : public GpuTest {};

TEST_F(GpuShapes, OddColumnsAndDepths) {
  for (const KernelSpec& spec : odd_shapes()) {
    REQUIRE_VALUE(const Weights weights, make_weights(5, spec));
    expect_right(spec, weights, routing_of(spec, {3, 0, 17, 8, 40}),
                 fmt::format("{} {}x{}", name(spec.family), spec.n, spec.k));
  }
}

// 8 experts, hidden 256, intermediate 128, top-2, 4 tokens.
TEST_F(GpuShapes, TinyLegalLayer) {
  const std::vector<std::int32_t> chosen = bench::random_top_k(4, 8, 2);
  for (const auto& [spec, top_k] : std::vector<std::pair<KernelSpec, int>>{
           {{.n = 256, .k = 256}, 2}, {{.n = 256, .k = 128}, 1}}) {
    REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
    expect_right(spec, weights, bench::indexed(chosen, 8, top_k, spec.block_m),
                 fmt::format("top_k {}", top_k));
  }
}

TEST_F(GpuShapes, LargestLayer) {
  const KernelSpec spec{.n = 512, .k = 7168, .block_m = 64};
  REQUIRE_VALUE(const Weights weights, make_weights(384, spec));
  expect_right(spec, weights,
               bench::indexed(bench::random_top_k(16384, 384, 8), 384, 8, spec.block_m),
               "384 experts, 16384 tokens");
}

TEST_F(GpuShapes, AnyNumberOfExpertsWithOneKernel) {
  for (const Family family : kFamilies) {
    const KernelSpec spec = small(family);
    REQUIRE_VALUE(const Weights weights, make_weights(385, spec));
    REQUIRE_VALUE(const Decision base, decision_of(spec, rig().device.arch));
    std::string key;
    for (const std::int64_t experts : {12, 24, 48, 49, 50, 56, 96, 384, 385}) {
      Decision decision = base;
      decision.descriptor.experts = experts;
      REQUIRE_VALUE(const PreparedKernel kernel, rig().engine.prepare(decision));
      if (key.empty()) key = kernel.key();
      EXPECT_EQ(kernel.key(), key) << experts;
      const auto chosen = bench::random_top_k(40, experts, 8);
      const Routing by_id = bench::indexed(chosen, experts, 8, spec.block_m);
      const Routing routing =
          family == Family::indexed ? by_id : routing_of(spec, by_id.rows_per_expert(experts));
      REQUIRE_VALUE(GemmRun run, GemmRun::make(rig(), kernel, weights, routing,
                                               {.seed = 7, .experts = experts}));
      expect_right(run, fmt::format("{} {} experts", name(family), experts));
    }
  }
}

// The segment table holds 512: more are planned window after window.
TEST_F(GpuShapes, MoreExpertsThanOneWindow) {
  for (const Family family : kFamilies) {
    const KernelSpec spec{.family = family, .n = 64, .k = 64};
    for (const std::int64_t experts : {511, 512, 513, 1300}) {
      REQUIRE_VALUE(const Weights weights, make_weights(experts, spec));
      std::vector<std::int64_t> counts;
      for (std::int64_t e = 0; e < experts; ++e) counts.push_back(1 + e % 9);
      const std::string what = fmt::format("{} {} experts", name(family), experts);
      if (family == Family::grouped_contiguous)
        expect_right(spec, weights, bench::ragged_rows(counts, abi::ContiguousSpelling::offsets32),
                     what);
      expect_right(spec, weights, routing_of(spec, counts), what);
    }
  }
}

// 299,594 rows of 7,168 columns pass 2^31 elements: the last rows tell whether an offset wrapped.
TEST_F(GpuShapes, OutputsBeyondTwoToThe31Elements) {
  const KernelSpec spec{.family = Family::grouped_contiguous, .n = 7168, .k = 64};
  REQUIRE_VALUE(const Weights weights, make_weights(2, spec));
  for (const std::int64_t rows : {299593, 299594}) {
    Routing routing =
        bench::ragged_rows({rows / 2, rows - rows / 2}, abi::ContiguousSpelling::offsets64);
    routing.owned.erase(routing.owned.begin(), routing.owned.end() - 32);  // judged: the last ones
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, std::move(routing)));
    REQUIRE_VALUE(Comparison comparison, run.check());
    EXPECT_EQ(comparison.rows, 32);
    EXPECT_EQ(comparison.changed, (rows - 32) * spec.n) << "every row belongs to somebody";
    comparison.changed = 0;
    EXPECT_EQ(comparison.violation(), "") << rows << " rows";
  }
}

}  // namespace
}  // namespace chord::gpu_test
