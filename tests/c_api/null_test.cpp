// Every pointer that a function requires, left out: the status, and the name in the message.
#include <fmt/format.h>

#include <functional>
#include <vector>

#include "src/c_api/handles.h"
#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

struct Case {
  const char* function;
  const char* argument;
  std::function<chord_status_t()> call;
};

// Every struct and object that is needed to leave one of them out.
class NullTest : public CApiTest {
 protected:
  void SetUp() override {
    CApiTest::SetUp();
    REQUIRE_SUCCESS(chord_plan_gemm(handle_, &gemm, plan.out()));
    REQUIRE_SUCCESS(chord_model_builtin("kimi-k2.5", &model));
    REQUIRE_SUCCESS(chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, &layer));
    layer.rows = 160;
    weight.experts = 1;
    weight.n = weight.k = 64;
  }

  static void expect_named(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      EXPECT_EQ(one.call(), CHORD_ERROR_INVALID_ARGUMENT) << one.function << " " << one.argument;
      EXPECT_STREQ(chord_last_error()->asked, one.function);
      EXPECT_EQ(chord_last_error()->found, fmt::format("argument `{}` is NULL", one.argument))
          << one.function;
    }
  }

  chord_gemm_descriptor_t gemm = decode();
  chord_model_t model = chord_model_init();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  chord_packed_weight_t weight = chord_packed_weight_init();
  chord_weight_source_t source = chord_weight_source_init();
  chord_deployment_t deployment = chord_deployment_init();
  OwnedPlan plan;
  chord_plan_t made = nullptr;
  std::size_t size = 0, other_size = 0;
};

TEST_F(NullTest, OfHandleAndModelFunctions) {
  chord_device_t device = chord_device_init();
  expect_named({
      {"chord_create", "handle", [&] { return chord_create(nullptr, nullptr); }},
      {"chord_cache_dir", "handle", [&] { return chord_cache_dir(nullptr, nullptr, 0, &size); }},
      {"chord_cache_dir", "needed", [&] { return chord_cache_dir(handle_, nullptr, 0, nullptr); }},
      {"chord_cache_dir", "text", [&] { return chord_cache_dir(handle_, nullptr, 9, &size); }},
      {"chord_device_query", "handle", [&] { return chord_device_query(nullptr, &device); }},
      {"chord_device_query", "device", [&] { return chord_device_query(handle_, nullptr); }},
      {"chord_model_builtin", "name", [&] { return chord_model_builtin(nullptr, &model); }},
      {"chord_model_builtin", "model", [&] { return chord_model_builtin("kimi-k2.5", nullptr); }},
      {"chord_model_read", "json", [&] { return chord_model_read(nullptr, 0, nullptr, &model); }},
      {"chord_model_read", "model", [&] { return chord_model_read("{}", 2, nullptr, nullptr); }},
      {"chord_model_shard", "model",
       [&] { return chord_model_shard(nullptr, CHORD_SHARD_EXPERT, 8, &layer); }},
      {"chord_model_shard", "layer",
       [&] { return chord_model_shard(&model, CHORD_SHARD_EXPERT, 8, nullptr); }},
  });
}

TEST_F(NullTest, OfPlanFunctions) {
  chord_plan_info_t info = chord_plan_info_init();
  chord_plan_t other = nullptr;
  const auto explain = [&](chord_handle_t handle, chord_plan_t p, std::size_t* needed) {
    return chord_plan_explain(handle, p, CHORD_FORMAT_TEXT, nullptr, 0, needed);
  };
  expect_named({
      {"chord_plan_gemm", "handle", [&] { return chord_plan_gemm(nullptr, &gemm, &made); }},
      {"chord_plan_gemm", "descriptor", [&] { return chord_plan_gemm(handle_, nullptr, &made); }},
      {"chord_plan_gemm", "plan", [&] { return chord_plan_gemm(handle_, &gemm, nullptr); }},
      {"chord_plan_layer", "handle",
       [&] { return chord_plan_layer(nullptr, &layer, &made, &other, nullptr); }},
      {"chord_plan_layer", "layer",
       [&] { return chord_plan_layer(handle_, nullptr, &made, &other, nullptr); }},
      {"chord_plan_layer", "gate_up",
       [&] { return chord_plan_layer(handle_, &layer, nullptr, &other, nullptr); }},
      {"chord_plan_layer", "down",
       [&] { return chord_plan_layer(handle_, &layer, &made, nullptr, nullptr); }},
      {"chord_plan_get_info", "plan", [&] { return chord_plan_get_info(nullptr, &info); }},
      {"chord_plan_get_info", "info", [&] { return chord_plan_get_info(plan, nullptr); }},
      {"chord_plan_get_descriptor", "plan",
       [&] { return chord_plan_get_descriptor(nullptr, &gemm); }},
      {"chord_plan_get_descriptor", "descriptor",
       [&] { return chord_plan_get_descriptor(plan, nullptr); }},
      {"chord_plan_workspace", "plan",
       [&] { return chord_plan_workspace(nullptr, 0, &size, &other_size); }},
      {"chord_plan_workspace", "bytes",
       [&] { return chord_plan_workspace(plan, 0, nullptr, &size); }},
      {"chord_plan_workspace", "flag_bytes",
       [&] { return chord_plan_workspace(plan, 0, &size, nullptr); }},
      {"chord_plan_explain", "handle", [&] { return explain(nullptr, plan, &size); }},
      {"chord_plan_explain", "plan", [&] { return explain(handle_, nullptr, &size); }},
      {"chord_plan_explain", "needed", [&] { return explain(handle_, plan, nullptr); }},
      {"chord_schedule_table", "handle",
       [&] { return chord_schedule_table(nullptr, &gemm, nullptr, 0, &size); }},
      {"chord_schedule_table", "descriptor",
       [&] { return chord_schedule_table(handle_, nullptr, nullptr, 0, &size); }},
      {"chord_schedule_table", "rows",
       [&] { return chord_schedule_table(handle_, &gemm, nullptr, 1, &size); }},
      {"chord_schedule_table", "count",
       [&] { return chord_schedule_table(handle_, &gemm, nullptr, 0, nullptr); }},
  });
  EXPECT_EQ(made, nullptr);
}

TEST_F(NullTest, OfWeightFunctions) {
  std::uint64_t word = 0;
  alignas(16) std::uint16_t bytes[8] = {};
  const auto pack_host = [&](bool codes, bool scales, bool to_codes, bool to_scales) {
    source.codes = codes ? bytes : nullptr;
    source.scales = scales ? bytes : nullptr;
    weight.codes = to_codes ? bytes : nullptr;
    weight.scales = to_scales ? bytes : nullptr;
    return chord_pack_host(&source, &weight);
  };
  expect_named({
      {"chord_packed_bytes", "weight",
       [&] { return chord_packed_bytes(nullptr, &size, &other_size); }},
      {"chord_packed_bytes", "weight_bytes",
       [&] { return chord_packed_bytes(&weight, nullptr, &size); }},
      {"chord_packed_bytes", "scale_bytes",
       [&] { return chord_packed_bytes(&weight, &size, nullptr); }},
      {"chord_pack_check", "weight", [&] { return chord_pack_check(CHORD_PACK_CLEAN, nullptr); }},
      {"chord_pack_host", "source", [&] { return chord_pack_host(nullptr, &weight); }},
      {"chord_pack_host", "weight", [&] { return chord_pack_host(&source, nullptr); }},
      {"chord_pack_host", "source.codes", [&] { return pack_host(false, true, true, true); }},
      {"chord_pack_host", "source.scales", [&] { return pack_host(true, false, true, true); }},
      {"chord_pack_host", "weight.codes", [&] { return pack_host(true, true, false, true); }},
      {"chord_pack_host", "weight.scales", [&] { return pack_host(true, true, true, false); }},
  });
  source.codes = source.scales = bytes;
  weight.codes = weight.scales = bytes;
  expect_named({
      {"chord_pack", "handle",
       [&] { return chord_pack(nullptr, &source, &weight, &word, nullptr); }},
      {"chord_pack", "source",
       [&] { return chord_pack(handle_, nullptr, &weight, &word, nullptr); }},
      {"chord_pack", "weight",
       [&] { return chord_pack(handle_, &source, nullptr, &word, nullptr); }},
      {"chord_pack", "status",
       [&] { return chord_pack(handle_, &source, &weight, nullptr, nullptr); }},
  });
}

TEST_F(NullTest, OfKernelFunctions) {
  chord_kernel_t kernel = nullptr;
  chord_kernel_info_t info = chord_kernel_info_init();
  const chord_gemm_arguments_t arguments = chord_gemm_arguments_init();
  const chord_indexed_routing_t indexed = chord_indexed_routing_init();
  const chord_contiguous_routing_t contiguous = chord_contiguous_routing_init();
  const chord_masked_routing_t masked = chord_masked_routing_init();
  expect_named({
      {"chord_prepare", "handle", [&] { return chord_prepare(nullptr, plan, &kernel); }},
      {"chord_prepare", "plan", [&] { return chord_prepare(handle_, nullptr, &kernel); }},
      {"chord_prepare", "kernel", [&] { return chord_prepare(handle_, plan, nullptr); }},
      {"chord_prepare_gemm", "handle", [&] { return chord_prepare_gemm(nullptr, &gemm, &kernel); }},
      {"chord_prepare_gemm", "descriptor",
       [&] { return chord_prepare_gemm(handle_, nullptr, &kernel); }},
      {"chord_prepare_gemm", "kernel", [&] { return chord_prepare_gemm(handle_, &gemm, nullptr); }},
      {"chord_kernel_get_info", "kernel", [&] { return chord_kernel_get_info(nullptr, &info); }},
      {"chord_kernel_get_plan", "kernel", [&] { return chord_kernel_get_plan(nullptr, &made); }},
      {"chord_launch_indexed", "kernel",
       [&] { return chord_launch_indexed(nullptr, &arguments, &indexed, nullptr); }},
      {"chord_launch_contiguous", "kernel",
       [&] { return chord_launch_contiguous(nullptr, &arguments, &contiguous, nullptr); }},
      {"chord_launch_masked", "kernel",
       [&] { return chord_launch_masked(nullptr, &arguments, &masked, nullptr); }},
  });
}

TEST_F(NullTest, OfLayerFunctions) {
  chord_layer_kernels_t kernels = nullptr;
  std::int64_t capacity = 0;
  const chord_gate_arguments_t gate = chord_gate_arguments_init();
  const chord_align_arguments_t align = chord_align_arguments_init();
  const chord_swiglu_arguments_t swiglu = chord_swiglu_arguments_init();
  const chord_combine_arguments_t combine = chord_combine_arguments_init();
  // Enough for calls that are refused before they look at it.
  chord_layer_kernels nothing_loaded{LayerKernels(nullptr)};
  expect_named({
      {"chord_layer_kernels_prepare", "handle",
       [&] { return chord_layer_kernels_prepare(nullptr, &kernels); }},
      {"chord_layer_kernels_prepare", "kernels",
       [&] { return chord_layer_kernels_prepare(handle_, nullptr); }},
      {"chord_align_sizes", "capacity", [&] { return chord_align_sizes(8, 8, 8, nullptr, &size); }},
      {"chord_align_sizes", "workspace_bytes",
       [&] { return chord_align_sizes(8, 8, 8, &capacity, nullptr); }},
      {"chord_gate", "kernels", [&] { return chord_gate(nullptr, &gate, nullptr); }},
      {"chord_align", "kernels", [&] { return chord_align(nullptr, &align, nullptr); }},
      {"chord_swiglu", "kernels", [&] { return chord_swiglu(nullptr, &swiglu, nullptr); }},
      {"chord_combine", "kernels", [&] { return chord_combine(nullptr, &combine, nullptr); }},
      {"chord_gate", "arguments", [&] { return chord_gate(&nothing_loaded, nullptr, nullptr); }},
      {"chord_align", "arguments", [&] { return chord_align(&nothing_loaded, nullptr, nullptr); }},
      {"chord_swiglu", "arguments",
       [&] { return chord_swiglu(&nothing_loaded, nullptr, nullptr); }},
      {"chord_combine", "arguments",
       [&] { return chord_combine(&nothing_loaded, nullptr, nullptr); }},
  });
}

TEST_F(NullTest, OfPrewarmAndCacheFunctions) {
  chord_report_t report = nullptr;
  chord_report_info_t info = chord_report_info_init();
  chord_missing_t missing = chord_missing_init();
  chord_cache_counters_t counters = chord_cache_counters_init();
  chord_deployment_t no_roles = chord_deployment_init();
  no_roles.model = &model;
  no_roles.role_count = 1;
  chord_deployment_t no_archs = chord_deployment_init();
  no_archs.model = &model;
  no_archs.arch_count = 1;
  chord_deployment_t no_families = chord_deployment_init();
  no_families.model = &model;
  no_families.family_count = 1;
  const auto prewarm = [&](const chord_deployment_t& d) {
    return chord_prewarm(handle_, &d, nullptr, &report);
  };
  expect_named({
      {"chord_prewarm", "handle",
       [&] { return chord_prewarm(nullptr, &deployment, nullptr, &report); }},
      {"chord_prewarm", "deployment",
       [&] { return chord_prewarm(handle_, nullptr, nullptr, &report); }},
      {"chord_prewarm", "report",
       [&] { return chord_prewarm(handle_, &deployment, nullptr, nullptr); }},
      {"chord_prewarm", "deployment.model", [&] { return prewarm(deployment); }},
      {"chord_prewarm", "deployment.roles", [&] { return prewarm(no_roles); }},
      {"chord_prewarm", "deployment.archs", [&] { return prewarm(no_archs); }},
      {"chord_prewarm", "deployment.families", [&] { return prewarm(no_families); }},
      {"chord_report_get_info", "report", [&] { return chord_report_get_info(nullptr, &info); }},
      {"chord_report_get_missing", "report",
       [&] { return chord_report_get_missing(nullptr, 0, &missing); }},
      {"chord_cache_get_counters", "handle",
       [&] { return chord_cache_get_counters(nullptr, &counters); }},
      {"chord_cache_get_counters", "counters",
       [&] { return chord_cache_get_counters(handle_, nullptr); }},
      {"chord_cache_metrics", "handle",
       [&] { return chord_cache_metrics(nullptr, nullptr, 0, &size); }},
      {"chord_cache_metrics", "needed",
       [&] { return chord_cache_metrics(handle_, nullptr, 0, nullptr); }},
  });
}

// As free() does.
TEST(Null, IsNothingToDestroy) {
  chord_destroy(nullptr);
  chord_plan_destroy(nullptr);
  chord_kernel_retain(nullptr);
  chord_kernel_destroy(nullptr);
  chord_layer_kernels_destroy(nullptr);
  chord_report_destroy(nullptr);
}

}  // namespace
}  // namespace chord::c_api_test
