// Launching on a made-up driver: the parameters are those of the C++ face, and nothing is allocated
// on the way.
#include "tests/c_api/allocations.h"
#include "tests/c_api/made_up_kernel.h"
#include "tests/support/sanitizer.h"

namespace chord::c_api_test {
namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    launched = {};
    weight_.codes = at(0x1000);
    weight_.scales = at(0x2000);
    weight_.experts = 8;
    weight_.n = 256;
    weight_.k = 128;
    arguments_.activations = at(0x3000);
    arguments_.output = at(0x4000);
    arguments_.weight = &weight_;
    arguments_.workspace = at(0x100000);
    arguments_.workspace_bytes = std::size_t{1} << 30;
    indexed_.sorted_ids = static_cast<std::int32_t*>(at(0x5000));
    indexed_.expert_ids = static_cast<std::int32_t*>(at(0x6000));
    indexed_.num_tokens_padded = static_cast<std::int32_t*>(at(0x7000));
    indexed_.capacity = 640;
    indexed_.num_ids = 160;
    indexed_.top_k = 8;
  }

  // What the C++ face launches with the same tensors.
  GemmArguments cpp(decltype(GemmArguments::routing) routing) const {
    GemmArguments arguments;
    arguments.activations = at(0x3000);
    arguments.output = at(0x4000);
    arguments.weight = {at(0x1000), at(0x2000), {.experts = 8, .n = 256, .k = 128}};
    arguments.routing = routing;
    arguments.workspace = at(0x100000);
    arguments.workspace_bytes = std::size_t{1} << 30;
    return arguments;
  }

  static IndexedRouting cpp_indexed() {
    return {static_cast<std::int32_t*>(at(0x5000)),
            static_cast<std::int32_t*>(at(0x6000)),
            static_cast<std::int32_t*>(at(0x7000)),
            640,
            160,
            8};
  }

  void expect_same_launch(chord_kernel_t kernel, const GemmArguments& arguments) {
    const Launched c = launched;
    launched = {};
    const Status status = Engine::launch(kernel->prepared, arguments, at(0x77));
    ASSERT_TRUE(status.ok()) << status.error().message();
    EXPECT_EQ(c.count, 1);
    EXPECT_EQ(c.ctas, launched.ctas);
    EXPECT_EQ(c.attributes, launched.attributes);
    EXPECT_EQ(c.stream, launched.stream);
    EXPECT_EQ(std::memcmp(&c.params, &launched.params, sizeof c.params), 0);
  }

  chord_packed_weight_t weight_ = chord_packed_weight_init();
  chord_gemm_arguments_t arguments_ = chord_gemm_arguments_init();
  chord_indexed_routing_t indexed_ = chord_indexed_routing_init();
};

TEST_F(LaunchTest, IndexedHasTheParametersOfTheCppFace) {
  const KernelPointer kernel = owned(Family::indexed);
  REQUIRE_SUCCESS(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, at(0x77)));
  expect_same_launch(kernel.get(), cpp(cpp_indexed()));
}

TEST_F(LaunchTest, ContiguousHasTheParametersOfTheCppFaceInEverySpelling) {
  const KernelPointer kernel = owned(Family::grouped_contiguous);
  chord_contiguous_routing_t routing = chord_contiguous_routing_init();
  routing.groups = at(0x5000);
  routing.rows = 1024;
  for (const chord_groups_t spelling :
       {CHORD_GROUPS_M_INDICES, CHORD_GROUPS_OFFSETS32, CHORD_GROUPS_OFFSETS64}) {
    launched = {};
    routing.spelling = spelling;
    REQUIRE_SUCCESS(chord_launch_contiguous(kernel.get(), &arguments_, &routing, at(0x77)));
    expect_same_launch(
        kernel.get(),
        cpp(ContiguousRouting{static_cast<abi::ContiguousSpelling>(spelling), at(0x5000), 1024}));
  }
}

TEST_F(LaunchTest, MaskedHasTheParametersOfTheCppFace) {
  const KernelPointer kernel = owned(Family::grouped_masked);
  chord_masked_routing_t routing = chord_masked_routing_init();
  routing.masked_m = static_cast<std::int32_t*>(at(0x5000));
  routing.max_m = 64;
  REQUIRE_SUCCESS(chord_launch_masked(kernel.get(), &arguments_, &routing, at(0x77)));
  expect_same_launch(kernel.get(), cpp(MaskedRouting{static_cast<std::int32_t*>(at(0x5000)), 64}));
}

TEST_F(LaunchTest, PassesRowWeightsAndRowOrderOn) {
  const KernelPointer weighted = owned(Family::indexed, Epilogue::weighted);
  const auto* row_weights = static_cast<const float*>(at(0x8000));
  arguments_.row_weights = row_weights;
  REQUIRE_SUCCESS(chord_launch_indexed(weighted.get(), &arguments_, &indexed_, nullptr));
  EXPECT_EQ(launched.params.row_weights, row_weights);
  arguments_.row_weights = nullptr;
  const KernelPointer swiglu = owned(Family::indexed, Epilogue::swiglu);
  EXPECT_EQ(chord_launch_indexed(swiglu.get(), &arguments_, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  weight_.row_order = CHORD_ROWS_GATE_UP;
  EXPECT_SUCCESS(chord_launch_indexed(swiglu.get(), &arguments_, &indexed_, nullptr));
  set_raw(weight_.row_order, 4);
  EXPECT_EQ(chord_launch_indexed(swiglu.get(), &arguments_, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`arguments.weight.row_order` is 4"));
}

TEST_F(LaunchTest, PassesTheProgrammaticDependenceOn) {
  const KernelPointer kernel = owned(Family::indexed);
  arguments_.programmatic_dependent_launch = 1;
  REQUIRE_SUCCESS(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr));
  EXPECT_EQ(launched.attributes, 1u);
}

TEST_F(LaunchTest, AllocatesNothing) {
  CHORD_SKIP_UNDER_SANITIZERS("allocations are not counted there");
  const KernelPointer kernel = owned(Family::indexed);
  start_counting();
  const chord_status_t status = chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr);
  const int allocations = stop_counting();
  EXPECT_EQ(status, CHORD_SUCCESS);
  EXPECT_EQ(launched.count, 1);
  EXPECT_EQ(allocations, 0);
}

// So that the test above can fail.
TEST(Allocations, AreCounted) {
  CHORD_SKIP_UNDER_SANITIZERS("allocations are not counted there");
  start_counting();
  const auto pointer = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(stop_counting(), 2);
}

TEST_F(LaunchTest, StructsThatAreNullAreRefusedByName) {
  const KernelPointer kernel = owned(Family::indexed);
  EXPECT_EQ(chord_launch_indexed(kernel.get(), nullptr, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `arguments` is NULL");
  EXPECT_EQ(chord_launch_indexed(kernel.get(), &arguments_, nullptr, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `routing` is NULL");
  EXPECT_EQ(chord_launch_contiguous(kernel.get(), &arguments_, nullptr, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `routing` is NULL");
  EXPECT_EQ(chord_launch_masked(kernel.get(), &arguments_, nullptr, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `routing` is NULL");
  arguments_.weight = nullptr;
  EXPECT_EQ(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `arguments.weight` is NULL");
  EXPECT_EQ(launched.count, 0);
}

TEST_F(LaunchTest, TensorsThatAreNullAreRefusedByName) {
  const KernelPointer kernel = owned(Family::indexed);
  const auto expect_named = [&](const char* name) {
    EXPECT_EQ(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr),
              CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, std::string(name) + " is a null pointer"))
        << chord_last_error()->message;
    SetUp();
  };
  arguments_.activations = nullptr;
  expect_named("activations");
  arguments_.output = nullptr;
  expect_named("output");
  arguments_.workspace = nullptr;
  expect_named("workspace");
  weight_.codes = nullptr;
  expect_named("weight.codes");
  weight_.scales = nullptr;
  expect_named("weight.scales");
  indexed_.sorted_ids = nullptr;
  expect_named("sorted_ids");
  indexed_.expert_ids = nullptr;
  expect_named("expert_ids");
  indexed_.num_tokens_padded = nullptr;
  expect_named("num_tokens_padded");
}

TEST_F(LaunchTest, AKernelOfAnotherFamilyIsRefused) {
  const KernelPointer kernel = owned(Family::grouped_masked);
  EXPECT_EQ(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "another routing"));
}

TEST_F(LaunchTest, SlabsWhoseRowsOverflowAreRefused) {
  const KernelPointer kernel = owned(Family::grouped_masked);
  chord_masked_routing_t routing = chord_masked_routing_init();
  routing.masked_m = static_cast<std::int32_t*>(at(0x5000));
  for (const std::int64_t size : {std::int64_t{1} << 61, INT64_MAX, INT64_MIN}) {
    routing.max_m = size;
    EXPECT_EQ(chord_launch_masked(kernel.get(), &arguments_, &routing, nullptr),
              CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, "max_m " + std::to_string(size)))
        << chord_last_error()->message;
  }
  EXPECT_EQ(launched.count, 0);
}

TEST_F(LaunchTest, SwitchesAreZeroOrOne) {
  const KernelPointer kernel = owned(Family::indexed);
  arguments_.checked = 5;
  EXPECT_EQ(chord_launch_indexed(kernel.get(), &arguments_, &indexed_, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`arguments.checked` is 5"));
}

TEST_F(LaunchTest, ASpellingThatIsNoneIsRefusedByName) {
  const KernelPointer kernel = owned(Family::grouped_contiguous);
  chord_contiguous_routing_t routing = chord_contiguous_routing_init();
  set_raw(routing.spelling, 3);
  EXPECT_EQ(chord_launch_contiguous(kernel.get(), &arguments_, &routing, nullptr),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`routing.spelling` is 3"));
}

}  // namespace
}  // namespace chord::c_api_test
