// Every shape of the Kimi K2 models at decode sizes, as a serving engine would run it: planned as a
// layer, gate/up and down with one routing.
#include <fmt/format.h>

#include <algorithm>

#include "chord/model.h"
#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int64_t kTokens[] = {1, 20, 50};
constexpr std::int64_t kMaxM = 64;
const int kExpertWays[] = {4, 8, 16, 32};
const int kTensorWays[] = {2, 4, 8, 16};
constexpr Family kModelFamilies[] = {Family::indexed, Family::grouped_masked};

Result<LayerPlan> plan_of(const Engine& engine, Architecture arch, const Shard& shard,
                          Family family, std::int64_t tokens) {
  CHORD_TRY(const ModelConfig model, builtin_model("kimi-k2.5"));
  CHORD_TRY(LayerDescriptor layer, shard_layer(model, shard));
  layer.family = family;
  layer.arch = arch;
  layer.role = Role::decode;
  if (family == Family::grouped_masked) {
    layer.max_m = kMaxM;
    layer.expected_m = std::max<std::int64_t>(1, tokens * layer.top_k / layer.experts);
  } else {
    layer.rows = tokens * layer.top_k;
  }
  return engine.plan_layer(layer);
}

std::vector<Shard> all_shards() {
  std::vector<Shard> shards;
  for (const int ways : kExpertWays) shards.push_back({ShardAxis::expert, ways});
  for (const int ways : kTensorWays) shards.push_back({ShardAxis::tensor, ways});
  return shards;
}

const bool kRegistered = register_kernels([](const Engine& engine, Architecture arch) -> Decisions {
  std::vector<Decision> decisions;
  for (const Shard& shard : all_shards())
    for (const Family family : kModelFamilies)
      for (const std::int64_t tokens : kTokens) {
        CHORD_TRY(const LayerPlan plan, plan_of(engine, arch, shard, family, tokens));
        decisions.push_back(plan.gate_up);
        decisions.push_back(plan.down);
      }
  return decisions;
});

class GpuModels : public GpuTest {
 protected:
  // One projection of one shard at every size and family; `weights` may hold more experts.
  void expect_right_at_all_sizes(const Shard& shard, bool is_down, const Weights& weights) {
    for (const Family family : kModelFamilies)
      for (const std::int64_t tokens : kTokens) {
        REQUIRE_VALUE(const LayerPlan plan,
                      plan_of(rig().engine, rig().device.arch, shard, family, tokens));
        const Decision& decision = is_down ? plan.down : plan.gate_up;
        const std::int64_t experts = decision.descriptor.experts;
        const auto chosen = bench::random_top_k(tokens, experts, 8);
        Routing routing = bench::indexed(chosen, experts, is_down ? 1 : 8, plan.block_m);
        if (family == Family::grouped_masked)
          routing = bench::masked(routing.rows_per_expert(experts), kMaxM);
        REQUIRE_VALUE(const PreparedKernel kernel, rig().engine.prepare(decision));
        REQUIRE_VALUE(GemmRun run, GemmRun::make(rig(), kernel, weights, std::move(routing),
                                                 {.seed = 7, .experts = experts}));
        expect_right(run, fmt::format("{}{} {} {} tokens", name(shard.axis), shard.ways,
                                      name(family), tokens));
      }
  }

  void expect_right_projection(const Shard& of_weights, const std::vector<Shard>& shards,
                               bool is_down) {
    REQUIRE_VALUE(const ModelConfig model, builtin_model("kimi-k2.5"));
    REQUIRE_VALUE(const LayerDescriptor layer, shard_layer(model, of_weights));
    const std::int64_t n = is_down ? layer.down_n : layer.gate_up_n;
    const std::int64_t k = is_down ? layer.down_k : layer.gate_up_k;
    REQUIRE_VALUE(const Weights weights,
                  Weights::make(rig(), {.experts = layer.experts, .n = n, .k = k}, {}));
    for (const Shard& shard : shards) expect_right_at_all_sizes(shard, is_down, weights);
  }

  void expect_right_tensor_shard(int ways) {
    const Shard shard{ShardAxis::tensor, ways};
    expect_right_projection(shard, {shard}, false);
    expect_right_projection(shard, {shard}, true);
  }
};

std::vector<Shard> expert_shards() {
  std::vector<Shard> shards = all_shards();
  shards.resize(std::size(kExpertWays));
  return shards;
}

TEST_F(GpuModels, GateUpOfExpertShards) {
  expect_right_projection({ShardAxis::expert, 4}, expert_shards(), false);
}
TEST_F(GpuModels, DownOfExpertShards) {
  expect_right_projection({ShardAxis::expert, 4}, expert_shards(), true);
}
TEST_F(GpuModels, TensorShard2) { expect_right_tensor_shard(2); }
TEST_F(GpuModels, TensorShard4) { expect_right_tensor_shard(4); }
TEST_F(GpuModels, TensorShard8) { expect_right_tensor_shard(8); }
TEST_F(GpuModels, TensorShard16) { expect_right_tensor_shard(16); }

}  // namespace
}  // namespace chord::gpu_test
