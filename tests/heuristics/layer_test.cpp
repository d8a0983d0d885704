// A layer is planned as a pair, and a deployment is a closed list of kernels.
#include <algorithm>
#include <set>
#include <tuple>

#include "chord/model.h"
#include "heuristics/deployment.h"
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

LayerDescriptor kimi(Shard shard, Role role, std::int64_t rows,
                     Architecture arch = Architecture::sm_90a) {
  LayerDescriptor layer = *shard_layer(*builtin_model("kimi-k2.5"), shard);
  layer.role = role;
  layer.rows = rows;
  layer.arch = arch;
  return layer;
}

constexpr Shard kEp8{ShardAxis::expert, 8};
constexpr Shard kTp8{ShardAxis::tensor, 8};

LayerPlan planned(const LayerDescriptor& layer, const Overrides& overrides = {}) {
  Result<LayerPlan> plan = solve_layer(layer, overrides, Policy::published);
  EXPECT_TRUE(plan.ok()) << error_text(plan);
  return plan.ok() ? *plan : LayerPlan{};
}

TEST(Layer, TakesTheProfileOfArchitectureShardAndRole) {
  struct Case {
    Shard shard;
    Role role;
    Architecture arch;
    const char* profile;
    Origin origin;
  };
  constexpr auto k90 = Architecture::sm_90a;
  constexpr auto k103 = Architecture::sm_103a;
  for (const Case& c : {Case{kEp8, Role::decode, k90, "h200_decode_ep8", Origin::rule},
                        Case{kEp8, Role::prefill, k90, "h200_prefill_ep8", Origin::rule},
                        Case{kEp8, Role::mix, k90, "h200_prefill_ep8", Origin::fallback},
                        Case{kTp8, Role::decode, k90, "h200_tp8", Origin::rule},
                        Case{kTp8, Role::prefill, k90, "h200_tp8", Origin::rule},
                        Case{kTp8, Role::mix, k90, "h200_tp8", Origin::rule},
                        Case{kEp8, Role::decode, k103, "blackwell_decode_ep8", Origin::rule},
                        Case{kEp8, Role::prefill, k103, "blackwell_decode_ep8", Origin::fallback},
                        Case{kTp8, Role::decode, k103, "blackwell_decode_ep8", Origin::fallback}}) {
    const LayerPlan plan = planned(kimi(c.shard, c.role, 160, c.arch));
    for (const Decision& decision : {plan.gate_up, plan.down}) {
      EXPECT_EQ(decision.descriptor.profile, c.profile);
      EXPECT_EQ(decision.origin, c.origin) << c.profile << " " << name(c.role);
    }
  }
}

TEST(Layer, OtherShardsOfTheModelAreTunedWhereTheShapeIs) {
  for (const int ways : {4, 8, 16, 32})
    EXPECT_EQ(planned(kimi({ShardAxis::expert, ways}, Role::decode, 160)).gate_up.origin,
              Origin::rule);
  for (const int ways : {2, 4, 16})
    EXPECT_EQ(planned(kimi({ShardAxis::tensor, ways}, Role::decode, 160)).gate_up.origin,
              Origin::fallback);
}

TEST(Layer, DownTakesTheBlockMOfGateUpAndKeepsItsOwnBlocks) {
  bool differed = false;
  for (const Shard shard : {kEp8, kTp8})
    for (const Role role : {Role::decode, Role::prefill})
      for (const Architecture arch : {Architecture::sm_90a, Architecture::sm_100a})
        for (const std::int64_t rows : {1, 160, 300, 800, 1500, 8000, 15000, 16384, 70000}) {
          const LayerPlan plan = planned(kimi(shard, role, rows, arch));
          GemmDescriptor alone = plan.down.descriptor;
          alone.block_m.reset();
          const Decision own = *solve(alone, {}, Policy::published);
          EXPECT_EQ(plan.block_m, plan.gate_up.schedule.block_m);
          EXPECT_EQ(plan.down.schedule.block_m, plan.block_m);
          EXPECT_EQ(plan.down.kernel.block_m, plan.block_m);
          EXPECT_EQ(plan.down.schedule.block_n, own.schedule.block_n);
          EXPECT_EQ(plan.down.schedule.block_k, own.schedule.block_k);
          differed = differed || own.schedule.block_m != plan.block_m;
        }
  EXPECT_TRUE(differed);  // else this test would show nothing
}

TEST(Layer, ThePlannedDescriptorsSolveToThePlan) {
  LayerDescriptor layer = kimi(kEp8, Role::decode, 0);
  layer.family = Family::grouped_masked;
  layer.max_m = 256;
  for (layer.expected_m = 1; layer.expected_m < 200; ++layer.expected_m) {
    const LayerPlan plan = planned(layer);
    const Decision again = *solve(plan.down.descriptor, {}, Policy::published);
    EXPECT_EQ(again.schedule, plan.down.schedule);
    EXPECT_EQ(again.kernel, plan.down.kernel);
    EXPECT_EQ(plan.down.schedule.block_m, plan.block_m);
  }
}

TEST(Layer, AnOverrideOfBlockMHoldsForBoth) {
  const LayerPlan plan = planned(kimi(kEp8, Role::prefill, 1024), pin(&Overrides::block_m, 64));
  EXPECT_EQ(plan.block_m, 64);
  EXPECT_EQ(plan.down.schedule.block_m, 64);
  EXPECT_EQ(plan.down.origin, Origin::override_value);
}

TEST(Layer, AGivenBlockMHoldsForBoth) {
  LayerDescriptor layer = kimi(kEp8, Role::prefill, 1024);
  layer.block_m = 48;
  const LayerPlan plan = planned(layer);
  EXPECT_EQ(plan.block_m, 48);
  EXPECT_EQ(plan.gate_up.kernel.block_m, 48);
  EXPECT_EQ(plan.down.kernel.block_m, 48);
}

TEST(Layer, AShardAxisThatContradictsAPublishedPairIsRefused) {
  LayerDescriptor expert = kimi(kEp8, Role::decode, 160);
  expert.shard.axis = ShardAxis::tensor;
  EXPECT_REFUSED(solve_layer(expert, {}, Policy::published), "tp8", "4096x7168", "ep");
  LayerDescriptor tensor = kimi(kTp8, Role::decode, 160);
  tensor.shard.axis = ShardAxis::expert;
  EXPECT_REFUSED(solve_layer(tensor, {}, Policy::published), "ep8", "512x7168", "tp");
}

TEST(Layer, BadSizesAreRefused) {
  LayerDescriptor layer = kimi(kEp8, Role::decode, 0);
  EXPECT_REFUSED(solve_layer(layer, {}, Policy::published), "rows is 0");
  layer.rows = 160;
  layer.down_k = 100;
  EXPECT_REFUSED(solve_layer(layer, {}, Policy::published), "k is 100");
  EXPECT_REFUSED(solve_layer(LayerDescriptor{}, {}, Policy::published), "n is 0");
}

Deployment kimi_deployment(Shard shard) {
  Deployment deployment;
  deployment.model = *builtin_model("kimi-k2.5");
  deployment.shard = shard;
  return deployment;
}

std::vector<Decision> expanded(const Deployment& deployment) {
  Result<std::vector<Decision>> decisions = expand(deployment, {}, Policy::measured);
  EXPECT_TRUE(decisions.ok()) << error_text(decisions);
  return decisions.ok() ? *decisions : std::vector<Decision>{};
}

bool contains_kernel(const std::vector<Decision>& all, const Decision& one) {
  return std::any_of(all.begin(), all.end(), [&](const Decision& d) {
    return d.kernel == one.kernel && d.descriptor.n == one.descriptor.n &&
           d.descriptor.k == one.descriptor.k && d.descriptor.arch == one.descriptor.arch &&
           d.descriptor.family == one.descriptor.family;
  });
}

bool same_pinnable_fields(const Decision& a, const Decision& b) {
  return a.schedule.block_m == b.schedule.block_m && a.schedule.block_n == b.schedule.block_n &&
         a.schedule.block_k == b.schedule.block_k && a.schedule.num_stages == b.schedule.num_stages;
}

TEST(Deployments, DecodeIsAFewKernelsPerProjection) {
  // For two projections: block_m 8, 16 and 24, and tiles as wide as the rows per expert ask for,
  // up to any number of rows.
  EXPECT_EQ(expanded(kimi_deployment(kEp8)).size(), 22u);
}

TEST(Deployments, HoldEveryKernelThatALayerOfItAsksFor) {
  for (const Shard shard : {kEp8, kTp8}) {
    Deployment deployment = kimi_deployment(shard);
    deployment.roles = {Role::decode, Role::prefill, Role::mix};
    deployment.archs = {Architecture::sm_90a, Architecture::sm_103a};
    const std::vector<Decision> all = expanded(deployment);
    for (const Architecture arch : deployment.archs)
      for (const Role role : deployment.roles)
        for (std::int64_t rows = 1; rows < kMaxTableRows; rows += 1 + rows / 50) {
          const LayerPlan plan = planned(kimi(shard, role, rows, arch));
          ASSERT_TRUE(contains_kernel(all, plan.gate_up)) << rows;
          ASSERT_TRUE(contains_kernel(all, plan.down)) << rows;
        }
  }
}

TEST(Deployments, HoldEveryGroupedKernelToo) {
  Deployment deployment = kimi_deployment(kEp8);
  deployment.families = {Family::grouped_masked, Family::grouped_contiguous};
  const std::vector<Decision> all = expanded(deployment);
  for (const Family family : deployment.families)
    for (std::int64_t size = 1; size < 100000; size += 1 + size / 20) {
      LayerDescriptor layer = kimi(kEp8, Role::decode, 0);
      layer.family = family;
      if (family == Family::grouped_masked) {
        layer.expected_m = size;
        layer.max_m = 256;
      } else {
        layer.rows = size;
      }
      const LayerPlan plan = planned(layer);
      ASSERT_TRUE(contains_kernel(all, plan.gate_up)) << name(family) << " " << size;
      ASSERT_TRUE(contains_kernel(all, plan.down)) << name(family) << " " << size;
    }
}

TEST(Layer, ABlockMThatRepeatsTheAnswerChangesNeitherProjection) {
  // The down projection alone would choose 128 here, gate/up 176.
  for (const std::int64_t rows : {1024, 16384, 65536}) {
    const LayerDescriptor layer = kimi(kEp8, Role::prefill, rows);
    const LayerPlan plain = planned(layer);
    const LayerPlan pinned = planned(layer, pin(&Overrides::block_m, plain.block_m));
    for (const auto& [a, b] :
         {std::pair(plain.gate_up, pinned.gate_up), std::pair(plain.down, pinned.down)}) {
      EXPECT_EQ(a.schedule, b.schedule) << rows;
      EXPECT_EQ(a.kernel, b.kernel) << rows;
      EXPECT_EQ(a.origin, b.origin) << rows;
    }
  }
}

TEST(Deployments, HoldWhatOverriddenLayersAskForAndNameNoneTwice) {
  for (const Overrides& overrides :
       {pin(&Overrides::block_n, 128), pin(&Overrides::num_stages, 3), pin(&Overrides::block_m, 64),
        pin(&Overrides::block_n, 64, pin(&Overrides::block_m, 176))}) {
    Deployment deployment = kimi_deployment(kEp8);
    deployment.roles = {Role::prefill};
    const Result<std::vector<Decision>> all = expand(deployment, overrides, Policy::published);
    ASSERT_TRUE(all.ok()) << error_text(all);
    const auto times_found = [&](const Decision& one) {
      return std::count_if(all->begin(), all->end(), [&](const Decision& d) {
        return d.kernel == one.kernel && d.descriptor.n == one.descriptor.n &&
               (d.origin == Origin::override_value) == (one.origin == Origin::override_value) &&
               (d.origin != Origin::override_value || same_pinnable_fields(d, one));
      });
    };
    for (std::int64_t rows = 1; rows < 200000; rows += 1 + rows / 30) {
      const LayerPlan plan = planned(kimi(kEp8, Role::prefill, rows), overrides);
      ASSERT_EQ(times_found(plan.gate_up), 1) << rows;
      ASSERT_EQ(times_found(plan.down), 1) << rows;
    }
  }
}

TEST(Deployments, NameNoKernelTwiceAndKeepTheirOrder) {
  Deployment deployment = kimi_deployment(kTp8);
  deployment.roles = {Role::prefill, Role::decode};
  const std::vector<Decision> all = expanded(deployment);
  const std::vector<Decision> again = expanded(deployment);
  ASSERT_EQ(all.size(), again.size());
  std::vector<Decision> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].descriptor, again[i].descriptor);
    EXPECT_FALSE(contains_kernel(seen, all[i]));
    seen.push_back(all[i]);
  }
}

TEST(Deployments, TheRangeOfRowsCutsThem) {
  Deployment deployment = kimi_deployment(kEp8);
  deployment.min_rows = 160;
  deployment.max_rows = 200;
  const std::vector<Decision> all = expanded(deployment);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].descriptor.rows, 160);
  EXPECT_EQ(all[0].schedule.block_m, 8);
}

TEST(Deployments, BadOnesAreRefused) {
  const auto refused = [](auto change) {
    Deployment deployment = kimi_deployment(kEp8);
    change(deployment);
    return expand(deployment, {}, Policy::measured);
  };
  EXPECT_REFUSED(refused([](auto& d) { d.archs.clear(); }), "architecture");
  EXPECT_REFUSED(refused([](auto& d) { d.roles.clear(); }), "role");
  EXPECT_REFUSED(refused([](auto& d) { d.families.clear(); }), "family");
  EXPECT_REFUSED(refused([](auto& d) { d.min_rows = 0; }), "rows 0..");
  EXPECT_REFUSED(refused([](auto& d) { d.max_rows = kMaxTableRows + 1; }), "rows 1..1073741825");
  EXPECT_REFUSED(refused([](auto& d) { d.min_rows = 9, d.max_rows = 8; }), "rows 9..8");
  EXPECT_REFUSED(refused([](auto& d) { d.shard.ways = 3; }), "ep3");
}

}  // namespace
}  // namespace chord::heuristics
