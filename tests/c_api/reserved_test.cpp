// Reserved words of every struct that the library reads: zero, or refused by name.
#include <fmt/format.h>

#include <functional>

#include "src/c_api/handles.h"
#include "tests/c_api/made_up_kernel.h"

namespace chord::c_api_test {
namespace {

class ReservedTest : public CApiTest {
 protected:
  // `call` gives the struct to a function that reads it as `argument`.
  template <class Struct, class Call>
  static void expect_refused(const char* argument, Struct value, Call call) {
    for (const int set : {1, -1}) {
      value.reserved = set;
      EXPECT_EQ(call(&value), CHORD_ERROR_INVALID_ARGUMENT) << argument;
      EXPECT_EQ(chord_last_error()->found,
                fmt::format("argument `{}.reserved` is {}", argument, set));
    }
  }

  chord_packed_weight_t weight_ = chord_packed_weight_init();
};

TEST_F(ReservedTest, OfStructsThatNeedNoGpu) {
  chord_handle_t made = nullptr;
  expect_refused("options", chord_options_init(),
                 [&](const chord_options_t* options) { return chord_create(options, &made); });
  chord_plan_t gate_up = nullptr, down = nullptr;
  expect_refused("layer", chord_layer_descriptor_init(),
                 [&](const chord_layer_descriptor_t* layer) {
                   return chord_plan_layer(handle_, layer, &gate_up, &down, nullptr);
                 });
  const chord_model_t model = small_model();
  chord_deployment_t deployment = chord_deployment_init();
  deployment.model = &model;
  chord_report_t report = nullptr;
  expect_refused("deployment", deployment, [&](const chord_deployment_t* wanted) {
    return chord_prewarm(handle_, wanted, nullptr, &report);
  });
  expect_refused("options", chord_prewarm_options_init(),
                 [&](const chord_prewarm_options_t* options) {
                   return chord_prewarm(handle_, &deployment, options, &report);
                 });
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(gate_up, nullptr);
  EXPECT_EQ(report, nullptr);
}

TEST_F(ReservedTest, OfStructsOfALaunch) {
  launched = {};
  chord_gemm_arguments_t arguments = chord_gemm_arguments_init();
  arguments.weight = &weight_;
  const KernelPointer indexed = owned(Family::indexed);
  expect_refused("routing", chord_indexed_routing_init(),
                 [&](const chord_indexed_routing_t* routing) {
                   return chord_launch_indexed(indexed.get(), &arguments, routing, nullptr);
                 });
  const KernelPointer contiguous = owned(Family::grouped_contiguous);
  expect_refused("routing", chord_contiguous_routing_init(),
                 [&](const chord_contiguous_routing_t* routing) {
                   return chord_launch_contiguous(contiguous.get(), &arguments, routing, nullptr);
                 });
  chord_layer_kernels nothing_loaded{LayerKernels(nullptr)};
  expect_refused("arguments", chord_swiglu_arguments_init(),
                 [&](const chord_swiglu_arguments_t* swiglu) {
                   return chord_swiglu(&nothing_loaded, swiglu, nullptr);
                 });
  EXPECT_EQ(launched.count, 0);
}

}  // namespace
}  // namespace chord::c_api_test
