// What an engine asks the library for.
#include "tools/examples/layer_plan.h"

#include <gtest/gtest.h>

#include "tests/tools/examples/files.h"
#include "tools/examples/synthetic_checkpoint.h"

namespace chord::examples {
namespace {

LayerQuestion kimi(const ShardChoice& choice, std::int64_t tokens) {
  const auto preset = synthetic_preset("kimi-ep8");
  const auto config = synthetic_config(preset->options);
  const auto shape = shard_shape(*config, choice);
  LayerQuestion question;
  question.shape = *shape;
  question.choice = choice;
  question.top_k = 8;
  question.tokens = tokens;
  return question;
}

TEST(Question, OfAnExpertRankHasItsShareOfTheRows) {
  const LayerQuestion question = kimi({.shard = {ShardAxis::expert, 8}}, 160);
  EXPECT_EQ(question.expected_rows(), 160);
  EXPECT_EQ(kimi({.shard = {ShardAxis::tensor, 8}}, 160).expected_rows(), 1280);
}

TEST(Question, CountsTheSharedExpertsRows) {
  const LayerQuestion question = kimi({.shard = {ShardAxis::expert, 8}, .shared_slot = true}, 160);
  EXPECT_EQ(question.expected_rows(), 320);
  EXPECT_EQ(question.slots(), 9);
  EXPECT_EQ(describe(question, Fused::none).experts, 49);
}

TEST(Question, DescribesBothProjections) {
  const LayerDescriptor layer =
      describe(kimi({.shard = {ShardAxis::tensor, 8}}, 16), Fused::swiglu);
  EXPECT_EQ(layer.gate_up_n, 512);
  EXPECT_EQ(layer.gate_up_k, 7168);
  EXPECT_EQ(layer.down_n, 7168);
  EXPECT_EQ(layer.down_k, 256);
  EXPECT_EQ(layer.gate_up_epilogue, Epilogue::swiglu);
  EXPECT_EQ(layer.down_epilogue, Epilogue::none);
}

TEST(Question, TakesTheRoleOfItsTokensUnlessToldOne) {
  LayerQuestion question = kimi({.shard = {ShardAxis::expert, 8}}, 256);
  EXPECT_EQ(describe(question, Fused::none).role, Role::decode);
  question.tokens = 257;
  EXPECT_EQ(describe(question, Fused::none).role, Role::prefill);
  question.role = Role::decode;
  EXPECT_EQ(describe(question, Fused::none).role, Role::decode);
}

// What engines align to: vLLM's and SGLang's Marlin and Triton paths.
TEST(BlockM, OfAnEngineIsHonoured) {
  const auto engine = Engine::create();
  ASSERT_TRUE(engine.ok()) << message_of(engine);
  for (const ShardAxis axis : {ShardAxis::expert, ShardAxis::tensor})
    for (const int block_m : {8, 16, 32, 48, 64, 128, 256})
      for (const Fused fused : {Fused::none, Fused::both}) {
        LayerQuestion question = kimi({.shard = {axis, 8}}, 64);
        question.block_m = block_m;
        const auto plan = engine->plan_layer(describe(question, fused));
        ASSERT_TRUE(plan.ok()) << message_of(plan);
        EXPECT_EQ(plan->block_m, block_m);
        EXPECT_EQ(plan->gate_up.kernel.block_m, block_m);
        EXPECT_EQ(plan->down.kernel.block_m, block_m);
      }
}

TEST(Names, OfFusedFormsGoBothWays) {
  for (const Fused fused : {Fused::none, Fused::swiglu, Fused::weighted, Fused::both})
    EXPECT_EQ(*parse_fused(name(fused)), fused);
  EXPECT_FALSE(parse_fused("all").ok());
}

}  // namespace
}  // namespace chord::examples
