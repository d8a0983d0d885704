// Planning through both faces gives the same answer, without a GPU.
#include <nlohmann/json.hpp>

#include "src/c_api/convert.h"
#include "src/explain.h"
#include "tests/c_api/schedule_fields.h"

namespace chord::c_api_test {
namespace {

void expect_same(chord_plan_t plan, const Decision& decision) {
  chord_plan_info_t info = chord_plan_info_init();
  REQUIRE_SUCCESS(chord_plan_get_info(plan, &info));
  EXPECT_EQ(info.origin, static_cast<int>(decision.origin));
  EXPECT_EQ(info.block_m, decision.kernel.block_m);
  EXPECT_EQ(info.threads, abi::threads(decision.kernel));
  EXPECT_EQ(info.shared_bytes, abi::shared_bytes(decision.kernel));
  EXPECT_EQ(fields_of(info.kernel), fields_of(decision.kernel));
  EXPECT_EQ(fields_of(info.published), fields_of(decision.schedule));
}

std::string explained(chord_handle_t handle, chord_plan_t plan, chord_format_t format) {
  std::size_t needed = 0;
  EXPECT_SUCCESS(chord_plan_explain(handle, plan, format, nullptr, 0, &needed));
  std::string text(needed, '?');
  EXPECT_SUCCESS(chord_plan_explain(handle, plan, format, text.data(), text.size(), &needed));
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

class PlanTest : public CApiTest {};

TEST_F(PlanTest, OfAShapeIsTheOneOfTheCppFace) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  const auto decision = engine().plan(cpp_decode());
  ASSERT_TRUE(decision.ok());
  expect_same(plan, *decision);
}

TEST_F(PlanTest, OfGroupedFamiliesIsTheOneOfTheCppFace) {
  for (const chord_family_t family :
       {CHORD_FAMILY_GROUPED_CONTIGUOUS, CHORD_FAMILY_GROUPED_MASKED}) {
    chord_gemm_descriptor_t descriptor = decode();
    descriptor.profile = nullptr;
    descriptor.family = family;
    const bool masked = family == CHORD_FAMILY_GROUPED_MASKED;
    descriptor.rows = masked ? 0 : 4096;
    descriptor.max_m = masked ? 256 : 0;
    descriptor.expected_m = masked ? 16 : 0;
    OwnedPlan plan;
    REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
    GemmDescriptor wanted = cpp_decode();
    wanted.profile.clear();
    wanted.family = static_cast<Family>(family);
    wanted.rows = descriptor.rows;
    wanted.max_m = descriptor.max_m;
    wanted.expected_m = descriptor.expected_m;
    const auto decision = engine().plan(wanted);
    ASSERT_TRUE(decision.ok()) << decision.error().message();
    expect_same(plan, *decision);
  }
}

TEST_F(PlanTest, GivesItsDescriptorWithTheDefaultsFilledIn) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  chord_gemm_descriptor_t filled = chord_gemm_descriptor_init();
  REQUIRE_SUCCESS(chord_plan_get_descriptor(plan, &filled));
  EXPECT_EQ(filled.num_sms, 132);
  EXPECT_EQ(filled.n, 4096);
  EXPECT_EQ(filled.rows, 160);
  EXPECT_STREQ(filled.profile, "h200_decode_ep8");
}

TEST_F(PlanTest, EveryFieldOfADescriptorArrives) {
  chord_gemm_descriptor_t c = decode();
  c.family = CHORD_FAMILY_GROUPED_MASKED;
  c.arch = CHORD_ARCH_SM_103A;
  c.num_sms = 100;
  c.block_m = 16;
  c.role = CHORD_ROLE_MIX;
  c.epilogue = CHORD_EPILOGUE_WEIGHTED;
  c.max_m = 7;
  c.expected_m = 9;
  const auto arrived = c_api::descriptor_of(c_api::Call("chord_test"), &c);
  ASSERT_TRUE(arrived.ok()) << arrived.error().message();
  GemmDescriptor expected = cpp_decode();
  expected.family = Family::grouped_masked;
  expected.arch = Architecture::sm_103a;
  expected.num_sms = 100;
  expected.block_m = 16;
  expected.role = Role::mix;
  expected.epilogue = Epilogue::weighted;
  expected.max_m = 7;
  expected.expected_m = 9;
  EXPECT_EQ(*arrived, expected);
  const chord_gemm_descriptor_t back = c_api::to_c(*arrived);
  EXPECT_EQ(*c_api::descriptor_of(c_api::Call("chord_test"), &back), expected);
}

TEST_F(PlanTest, OfALayerOfAModelIsTheOneOfTheCppFace) {
  chord_model_t model = chord_model_init();
  REQUIRE_SUCCESS(chord_model_builtin("kimi-k2.5", &model));
  for (const auto& [axis, ways] : {std::pair{CHORD_SHARD_EXPERT, 8}, {CHORD_SHARD_TENSOR, 8}}) {
    chord_layer_descriptor_t layer = chord_layer_descriptor_init();
    REQUIRE_SUCCESS(chord_model_shard(&model, axis, ways, &layer));
    layer.rows = 160;
    OwnedPlan gate_up, down;
    std::int32_t block_m = 0;
    REQUIRE_SUCCESS(chord_plan_layer(handle_, &layer, gate_up.out(), down.out(), &block_m));
    auto wanted = shard_layer(*builtin_model("kimi-k2.5"),
                              {.axis = static_cast<ShardAxis>(axis), .ways = ways});
    ASSERT_TRUE(wanted.ok());
    wanted->rows = 160;
    const auto pair = engine().plan_layer(*wanted);
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    expect_same(gate_up, pair->gate_up);
    expect_same(down, pair->down);
    EXPECT_EQ(block_m, pair->block_m);
  }
}

TEST_F(PlanTest, OfALayerHasItsEpilogues) {
  chord_model_t model = chord_model_init();
  REQUIRE_SUCCESS(chord_model_builtin("kimi-k2.5", &model));
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  REQUIRE_SUCCESS(chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer));
  layer.rows = 160;
  layer.gate_up_epilogue = CHORD_EPILOGUE_SWIGLU;
  layer.down_epilogue = CHORD_EPILOGUE_WEIGHTED;
  OwnedPlan gate_up, down;
  REQUIRE_SUCCESS(chord_plan_layer(handle_, &layer, gate_up.out(), down.out(), nullptr));
  auto wanted = shard_layer(*builtin_model("kimi-k2.5"), {});
  ASSERT_TRUE(wanted.ok());
  wanted->rows = 160;
  wanted->gate_up_epilogue = Epilogue::swiglu;
  wanted->down_epilogue = Epilogue::weighted;
  const auto pair = engine().plan_layer(*wanted);
  ASSERT_TRUE(pair.ok()) << pair.error().message();
  expect_same(gate_up, pair->gate_up);
  expect_same(down, pair->down);
  chord_gemm_descriptor_t of_down = chord_gemm_descriptor_init();
  REQUIRE_SUCCESS(chord_plan_get_descriptor(down, &of_down));
  EXPECT_EQ(of_down.epilogue, CHORD_EPILOGUE_WEIGHTED);
}

TEST_F(PlanTest, AnEnumThatIsNoneIsRefusedByName) {
  chord_gemm_descriptor_t descriptor = decode();
  set_raw(descriptor.family, 7);
  OwnedPlan plan;
  EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`descriptor.family` is 7"));
  descriptor = decode();
  set_raw(descriptor.role, -1);
  EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`descriptor.role` is -1"));
  descriptor = decode();
  set_raw(descriptor.epilogue, 3);
  EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`descriptor.epilogue` is 3"));
}

TEST_F(PlanTest, AShapeThatCanNotBeIsRefusedWithItsNumber) {
  chord_gemm_descriptor_t descriptor = decode();
  descriptor.n = 4097;
  OwnedPlan plan;
  EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "4097"));
  EXPECT_EQ(static_cast<chord_plan_t>(plan), nullptr);
}

TEST_F(PlanTest, OutlivesItsHandle) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  {
    const OwnedHandle handle = std::move(handle_);
    REQUIRE_SUCCESS(chord_plan_gemm(handle, &descriptor, plan.out()));
  }
  expect_same(plan, *engine().plan(cpp_decode()));
}

TEST_F(PlanTest, ExplainsItselfAsTheCppFaceDoes) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  const auto explanation = engine().explain(cpp_decode());
  ASSERT_TRUE(explanation.ok());
  const std::string json = explained(handle_, plan, CHORD_FORMAT_JSON);
  EXPECT_EQ(json, to_json(*explanation));
  EXPECT_FALSE(nlohmann::json::parse(json)["reasons"].empty());
  EXPECT_TRUE(contains(explained(handle_, plan, CHORD_FORMAT_TEXT), "published schedule"));
}

TEST_F(PlanTest, WorkspaceFollowsTheSmsOfTheGpu) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  const KernelSchedule kernel = engine().plan(cpp_decode())->kernel;
  for (const int sms : {0, 1, 78, 132}) {
    std::size_t bytes = 0, flags = 0;
    REQUIRE_SUCCESS(chord_plan_workspace(plan, sms, &bytes, &flags));
    const int ctas = sms == 0 ? 132 : sms;
    EXPECT_EQ(bytes, static_cast<std::size_t>(abi::workspace_bytes(kernel, ctas)));
    EXPECT_EQ(flags, static_cast<std::size_t>(abi::workspace_flag_bytes(ctas)));
  }
}

TEST_F(PlanTest, WorkspaceOfNoGpuIsRefused) {
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  std::size_t bytes = 0, flags = 0;
  EXPECT_EQ(chord_plan_workspace(plan, -1, &bytes, &flags), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`num_sms` is -1"));
}

}  // namespace
}  // namespace chord::c_api_test
