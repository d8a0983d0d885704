// Errors of the core arrive with the function and the path of the argument as chord.h has it.
#include "src/c_api/spelling.h"

#include "tests/c_api/made_up_kernel.h"

namespace chord::c_api_test {
namespace {

void* somewhere(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Tensors of a launch of the made-up kernels, all in order.
struct Tensors {
  chord_packed_weight_t weight = chord_packed_weight_init();
  chord_gemm_arguments_t arguments = chord_gemm_arguments_init();
  chord_indexed_routing_t indexed = chord_indexed_routing_init();
  chord_contiguous_routing_t contiguous = chord_contiguous_routing_init();
  chord_masked_routing_t masked = chord_masked_routing_init();

  Tensors() {
    weight.codes = weight.scales = somewhere(0x1000);
    weight.experts = 8;
    weight.n = 256;
    weight.k = 128;
    arguments.activations = arguments.output = somewhere(0x3000);
    arguments.weight = &weight;
    arguments.workspace = somewhere(0x100000);
    arguments.workspace_bytes = std::size_t{1} << 30;
    auto* words = static_cast<std::int32_t*>(somewhere(0x5000));
    indexed.sorted_ids = indexed.expert_ids = indexed.num_tokens_padded = words;
    contiguous.groups = masked.masked_m = words;
  }
  Tensors(const Tensors&) = delete;
};

// What a change of the tensors is refused with.
template <class Change>
std::string indexed_refusal(Change change, Epilogue epilogue = Epilogue::none) {
  const KernelPointer kernel = owned(Family::indexed, epilogue);
  Tensors t;
  change(t);
  EXPECT_EQ(chord_launch_indexed(kernel.get(), &t.arguments, &t.indexed, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  return chord_last_error()->message;
}

TEST(Spelling, OfALaunchNamesTheArgument) {
  EXPECT_EQ(indexed_refusal([](Tensors& t) { t.arguments.activations = nullptr; }),
            "chord_launch_indexed: launch of indexed N=256 K=128: "
            "arguments.activations is a null pointer (pass device memory)");
  const auto says = [](auto change, const char* text) {
    const std::string message = indexed_refusal(change);
    EXPECT_TRUE(contains(message, text)) << message;
  };
  says([](auto& t) { t.arguments.output = somewhere(8); }, ": arguments.output is at 0x8");
  says([](auto& t) { t.weight.codes = nullptr; }, ": arguments.weight.codes is a null");
  says([](auto& t) { t.weight.n = 64; }, ": arguments.weight is packed for N=64");
  says([](auto& t) { t.arguments.workspace_bytes = 1; }, ": arguments.workspace of 1 bytes");
  says([](auto& t) { t.arguments.workspace_bytes = 1; }, "(workspace_bytes of the kernel's info)");
  says([](auto& t) { t.indexed.sorted_ids = nullptr; }, ": routing.sorted_ids is a null");
  says([](auto& t) { t.indexed.num_ids = -1; }, ": routing.num_ids -1");
}

TEST(Spelling, OfALaunchNamesTheEnumerators) {
  const auto row_weights = [](Tensors& t) {
    t.arguments.row_weights = static_cast<float*>(somewhere(4));
  };
  EXPECT_TRUE(contains(indexed_refusal(row_weights), "plan with CHORD_EPILOGUE_WEIGHTED"));
  const std::string order = indexed_refusal([](Tensors&) {}, Epilogue::swiglu);
  EXPECT_TRUE(contains(order, "arguments.weight's rows are in plain order")) << order;
  EXPECT_TRUE(contains(order, "CHORD_ROWS_GATE_UP belongs to kernels with CHORD_EPILOGUE_SWIGLU"));
}

TEST(Spelling, OfGroupedLaunchesNamesTheRouting) {
  Tensors t;
  const KernelPointer contiguous = owned(Family::grouped_contiguous);
  t.contiguous.groups = nullptr;
  for (const chord_groups_t spelling : {CHORD_GROUPS_M_INDICES, CHORD_GROUPS_OFFSETS32}) {
    t.contiguous.spelling = spelling;
    chord_launch_contiguous(contiguous.get(), &t.arguments, &t.contiguous, nullptr);
    EXPECT_STREQ(chord_last_error()->found, "routing.groups is a null pointer");
  }
  const KernelPointer masked = owned(Family::grouped_masked);
  t.masked.max_m = -3;
  chord_launch_masked(masked.get(), &t.arguments, &t.masked, nullptr);
  EXPECT_STREQ(chord_last_error()->found, "routing.max_m -3 of 8 experts");
}

TEST(Spelling, OfPackingNamesBothStructs) {
  alignas(16) char bytes[64] = {};
  chord_weight_source_t source = chord_weight_source_init();
  chord_packed_weight_t weight = chord_packed_weight_init();
  weight.experts = 1;
  weight.n = weight.k = 64;
  const auto says = [&](const void* codes, void* packed, void* scales, const char* text) {
    source.codes = codes;
    source.scales = reinterpret_cast<const std::uint16_t*>(bytes);
    weight.codes = packed;
    weight.scales = scales;
    EXPECT_EQ(chord_pack_host(&source, &weight), CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, text)) << chord_last_error()->message;
  };
  says(bytes + 1, bytes, bytes, "chord_pack_host: pack weights: source.codes is at");
  says(bytes, bytes + 4, bytes, "chord_pack_host: pack weights: weight.codes is at");
  says(bytes, bytes, bytes + 4, "chord_pack_host: pack weights: weight.scales is at");
  weight.n = 72;
  says(bytes, bytes, bytes, "weight.n % 64 is 8");
  weight.n = 64;
  weight.layout_version = 7;
  says(bytes, bytes, bytes, "weight.layout_version is 7, this library has 1");
  weight.layout_version = 1;
  weight.experts = 0;
  says(bytes, bytes, bytes, ": weight.experts is 0");
}

class SpellingTest : public CApiTest {};

TEST_F(SpellingTest, OfPlansNamesTheFieldOfTheDescriptor) {
  const auto says = [&](auto change, const char* text) {
    chord_gemm_descriptor_t descriptor = decode();
    change(descriptor);
    OwnedPlan plan;
    EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, text)) << chord_last_error()->message;
    EXPECT_TRUE(contains(chord_last_error()->asked, "chord_plan_gemm: plan of indexed"));
  };
  says([](auto& d) { d.n = 4097; }, ": descriptor.n is 4097 = 64 * 64 + 1");
  says([](auto& d) { d.experts = 0; }, ": descriptor.experts is 0");
  says([](auto& d) { d.block_m = 9; }, ": descriptor.block_m is 9");
  says([](auto& d) { d.max_m = 9; }, ": descriptor.max_m is 9");
  says([](auto& d) { d.profile = nullptr; }, ": descriptor.profile: no profile is given");
}

TEST_F(SpellingTest, OfLayersAndDeploymentsNamesTheField) {
  const chord_model_t model = small_model();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  REQUIRE_SUCCESS(chord_model_shard(&model, CHORD_SHARD_EXPERT, 4, &layer));
  layer.shard_ways = 0;
  OwnedPlan gate_up, down;
  EXPECT_NE(chord_plan_layer(handle_, &layer, gate_up.out(), down.out(), nullptr), CHORD_SUCCESS);
  EXPECT_STREQ(chord_last_error()->found, "layer.shard_ways is 0");
  layer.shard_ways = 4;
  layer.rows = 160;
  layer.down_n = 65;
  EXPECT_NE(chord_plan_layer(handle_, &layer, gate_up.out(), down.out(), nullptr), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->found, "layer.gate_up_n or layer.down_n is 65"))
      << chord_last_error()->found;
  chord_deployment_t deployment = chord_deployment_init();
  deployment.model = &model;
  deployment.min_rows = 0;
  OwnedReport report;
  EXPECT_NE(chord_prewarm(handle_, &deployment, nullptr, report.out()), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->message, "deployment.min_rows and max_rows 0.."))
      << chord_last_error()->message;
}

// The two layer kernels that know which rows are not theirs.
TEST(Spelling, OfALayerKernelLeavesTheFilterOut) {
  const Error error{ErrorCode::invalid_argument, "launch of swiglu",
                    "filter.expert_map without filter.ids", ""};
  EXPECT_EQ(c_api::spelled_for_c("chord_swiglu", error).found,
            "arguments.expert_map without arguments.ids");
  EXPECT_EQ(
      c_api::spelled_for_c("chord_gate", {ErrorCode::invalid_argument, "", "scale is 0", ""}).found,
      "arguments.scale is 0");
}

TEST(Spelling, LeavesOtherWordsAlone) {
  const Error error{ErrorCode::io_error, "write a", "rows of text", "weights are heavy"};
  const Error spelled = c_api::spelled_for_c("chord_create", error);
  EXPECT_EQ(spelled.message(), "chord_create: " + error.message());
}

}  // namespace
}  // namespace chord::c_api_test
