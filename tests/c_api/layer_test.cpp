// The layer kernels through the C face: every argument arrives, and what is refused.
#include "chord/layer.h"

#include <cmath>

#include "src/c_api/handles.h"
#include "src/c_api/layer_arguments.h"
#include "src/layer/layer_params.h"
#include "tests/c_api/allocations.h"
#include "tests/c_api/fixture.h"
#include "tests/support/sanitizer.h"

namespace chord::c_api_test {
namespace {

const c_api::Call kCall("chord_test");

template <class Value>
Value* at(std::uintptr_t address) {
  return reinterpret_cast<Value*>(address);
}

TEST(Layer, EveryGateArgumentArrives) {
  chord_gate_arguments_t c = chord_gate_arguments_init();
  c.logits = at<void>(0x100);
  c.correction_bias = at<float>(0x200);
  c.ids = at<std::int32_t>(0x300);
  c.weights = at<float>(0x400);
  c.tokens = 5;
  c.logit_type = CHORD_LOGITS_BF16;
  c.experts = 384;
  c.top_k = 8;
  c.scoring = CHORD_SCORING_SOFTMAX;
  c.renormalise = 0;
  c.scale = 2.827f;
  c.shared_slot = 1;
  c.programmatic_dependent_launch = 1;
  GateArguments to;
  ASSERT_TRUE(c_api::convert(kCall, c, to).ok());
  EXPECT_EQ(to.logits, c.logits);
  EXPECT_EQ(to.correction_bias, c.correction_bias);
  EXPECT_EQ(to.ids, c.ids);
  EXPECT_EQ(to.weights, c.weights);
  EXPECT_EQ(to.tokens, 5);
  EXPECT_EQ(to.logit_type, LogitType::bf16);
  EXPECT_EQ(to.experts, 384);
  EXPECT_EQ(to.top_k, 8);
  EXPECT_EQ(to.scoring, Scoring::softmax);
  EXPECT_FALSE(to.renormalise);
  EXPECT_EQ(to.scale, 2.827f);
  EXPECT_TRUE(to.shared_slot);
  EXPECT_TRUE(to.programmatic_dependent_launch);
}

TEST(Layer, GateDefaultsAreThoseOfTheCppFace) {
  GateArguments to;
  ASSERT_TRUE(c_api::convert(kCall, chord_gate_arguments_init(), to).ok());
  const GateArguments expected;
  EXPECT_EQ(to.renormalise, expected.renormalise);
  EXPECT_EQ(to.scale, expected.scale);
  EXPECT_EQ(to.scoring, expected.scoring);
  EXPECT_EQ(to.logit_type, expected.logit_type);
  EXPECT_EQ(to.shared_slot, expected.shared_slot);
}

TEST(Layer, EveryAlignArgumentArrives) {
  chord_align_arguments_t c = chord_align_arguments_init();
  c.ids = at<std::int32_t>(0x100);
  c.expert_map = at<std::int32_t>(0x200);
  c.sorted_ids = at<std::int32_t>(0x300);
  c.expert_ids = at<std::int32_t>(0x400);
  c.num_tokens_padded = at<std::int32_t>(0x500);
  c.workspace = at<void>(0x600);
  c.workspace_bytes = 700;
  c.num_ids = 800;
  c.capacity = 900;
  c.experts = 48;
  c.block_m = 16;
  c.foreign = CHORD_FOREIGN_MARK;
  c.programmatic_dependent_launch = 1;
  AlignArguments to;
  ASSERT_TRUE(c_api::convert(kCall, c, to).ok());
  EXPECT_EQ(to.ids, c.ids);
  EXPECT_EQ(to.expert_map, c.expert_map);
  EXPECT_EQ(to.sorted_ids, c.sorted_ids);
  EXPECT_EQ(to.expert_ids, c.expert_ids);
  EXPECT_EQ(to.num_tokens_padded, c.num_tokens_padded);
  EXPECT_EQ(to.workspace, c.workspace);
  EXPECT_EQ(to.workspace_bytes, 700u);
  EXPECT_EQ(to.num_ids, 800);
  EXPECT_EQ(to.capacity, 900);
  EXPECT_EQ(to.experts, 48);
  EXPECT_EQ(to.block_m, 16);
  EXPECT_EQ(to.foreign, ForeignExperts::mark);
  EXPECT_TRUE(to.programmatic_dependent_launch);
}

TEST(Layer, EverySwigluArgumentArrives) {
  chord_swiglu_arguments_t c = chord_swiglu_arguments_init();
  c.gate_up = at<void>(0x100);
  c.output = at<void>(0x200);
  c.ids = at<std::int32_t>(0x300);
  c.expert_map = at<std::int32_t>(0x400);
  c.rows = 5;
  c.columns = 2048;
  c.experts = 48;
  c.programmatic_dependent_launch = 1;
  SwigluArguments to;
  ASSERT_TRUE(c_api::convert(kCall, c, to).ok());
  EXPECT_EQ(to.gate_up, c.gate_up);
  EXPECT_EQ(to.output, c.output);
  EXPECT_EQ(to.filter.ids, c.ids);
  EXPECT_EQ(to.filter.expert_map, c.expert_map);
  EXPECT_EQ(to.filter.experts, 48);
  EXPECT_EQ(to.rows, 5);
  EXPECT_EQ(to.columns, 2048);
  EXPECT_TRUE(to.programmatic_dependent_launch);
}

TEST(Layer, EveryCombineArgumentArrives) {
  chord_combine_arguments_t c = chord_combine_arguments_init();
  c.rows = at<void>(0x100);
  c.weights = at<float>(0x200);
  c.output = at<void>(0x300);
  c.ids = at<std::int32_t>(0x400);
  c.expert_map = at<std::int32_t>(0x500);
  c.tokens = 6;
  c.slots = 9;
  c.columns = 7168;
  c.experts = 48;
  c.programmatic_dependent_launch = 1;
  CombineArguments to;
  ASSERT_TRUE(c_api::convert(kCall, c, to).ok());
  EXPECT_EQ(to.rows, c.rows);
  EXPECT_EQ(to.weights, c.weights);
  EXPECT_EQ(to.output, c.output);
  EXPECT_EQ(to.filter.ids, c.ids);
  EXPECT_EQ(to.filter.expert_map, c.expert_map);
  EXPECT_EQ(to.filter.experts, 48);
  EXPECT_EQ(to.tokens, 6);
  EXPECT_EQ(to.slots, 9);
  EXPECT_EQ(to.columns, 7168);
  EXPECT_TRUE(to.programmatic_dependent_launch);
}

TEST(Layer, ConvertingAllocatesNothing) {
  CHORD_SKIP_UNDER_SANITIZERS("allocations are not counted there");
  const chord_align_arguments_t c = chord_align_arguments_init();
  AlignArguments to;
  start_counting();
  const bool done = c_api::convert(kCall, c, to).ok();
  EXPECT_EQ(stop_counting(), 0);
  EXPECT_TRUE(done);
}

TEST(Layer, EnumsAndSwitchesThatAreNoneAreRefusedByName) {
  chord_layer_kernels nothing_loaded{LayerKernels(nullptr)};
  chord_gate_arguments_t gate = chord_gate_arguments_init();
  set_raw(gate.scoring, 2);
  EXPECT_EQ(chord_gate(&nothing_loaded, &gate, nullptr), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`arguments.scoring` is 2"));
  gate = chord_gate_arguments_init();
  gate.renormalise = -1;
  EXPECT_EQ(chord_gate(&nothing_loaded, &gate, nullptr), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`arguments.renormalise` is -1"));
  chord_align_arguments_t align = chord_align_arguments_init();
  set_raw(align.foreign, 2);
  EXPECT_EQ(chord_align(&nothing_loaded, &align, nullptr), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`arguments.foreign` is 2"));
}

TEST(Layer, AScaleThatWouldNotScaleIsRefusedByName) {
  GateArguments gate;
  gate.experts = 384;
  gate.top_k = 8;
  abi::GateParams params;
  EXPECT_TRUE(layer::fill_params(gate, params).ok());
  for (const float scale : {0.0f, -0.0f, INFINITY, -INFINITY, NAN}) {
    gate.scale = scale;
    const auto filled = layer::fill_params(gate, params);
    ASSERT_FALSE(filled.ok()) << scale;
    EXPECT_TRUE(contains(filled.error().found, "scale is ")) << filled.error().found;
  }
}

TEST(Layer, AlignSizesAreThoseOfTheCppFace) {
  for (const std::int64_t num_ids : {0, 1, 160, 4096, 4097, 100000}) {
    std::int64_t capacity = -1;
    std::size_t bytes = 1;
    REQUIRE_SUCCESS(chord_align_sizes(num_ids, 48, 16, &capacity, &bytes));
    EXPECT_EQ(capacity, align_capacity(num_ids, 48, 16));
    EXPECT_EQ(bytes, align_workspace_bytes(num_ids, 48));
  }
}

TEST(Layer, AlignSizesOfNothingAreRefusedByName) {
  const auto refused = [](std::int64_t num_ids, int experts, int block_m, const char* text) {
    std::int64_t capacity = -1;
    std::size_t bytes = 1;
    EXPECT_EQ(chord_align_sizes(num_ids, experts, block_m, &capacity, &bytes),
              CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, text)) << chord_last_error()->message;
    EXPECT_EQ(capacity, -1);
  };
  refused(-1, 48, 16, "`num_ids` is -1");
  refused(std::int64_t{1} << 31, 48, 16, "`num_ids` is 2147483648");
  refused((std::int64_t{1} << 31) - 1, 48, 16, "`num_ids` is 2147483647, with its padding");
  refused(160, 0, 16, "`experts` is 0");
  refused(160, 1025, 16, "`experts` is 1025");
  refused(160, 48, 12, "`block_m` is 12");
  refused(160, 48, 264, "`block_m` is 264");
}

}  // namespace
}  // namespace chord::c_api_test
