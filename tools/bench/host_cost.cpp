// Times the host side of a launch on a small masked GEMM with no rows, so that the GPU is never the
// slower side.
#include "tools/bench/host_cost.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <variant>

#include "chord/chord.h"
#include "src/launch/launch.h"
#include "src/prepared_kernel.h"
#include "tools/bench/gemm_run.h"

namespace chord::bench {
namespace {

constexpr int kBatch = 200;  // launches in flight; the driver's queue holds about a thousand
constexpr int kBatches = 31;

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Median microseconds of one call, the GPU idle before every batch.
template <class Call>
Result<double> time_calls(Rig& rig, const Call& call) {
  std::vector<double> per_call;
  for (int batch = 0; batch < kBatches; ++batch) {
    CHORD_TRY(rig.stream.synchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) CHORD_TRY(call());
    per_call.push_back(microseconds_since(begin) / kBatch);
  }
  return median(std::move(per_call));
}

GemmDescriptor small_descriptor(const Rig& rig) {
  GemmDescriptor descriptor;
  descriptor.family = Family::grouped_masked;
  descriptor.arch = rig.device.arch;
  descriptor.num_sms = rig.device.num_sms;
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = 1;
  descriptor.max_m = 8;
  descriptor.expected_m = 1;
  return descriptor;
}

Status c_status(chord_status_t status) {
  if (status == CHORD_SUCCESS) return {};
  return Error{ErrorCode::internal, "a call of the C face", chord_last_error()->message, ""};
}

// The same launch through chord/chord.h.
Result<double> time_c_launches(Rig& rig, const GemmDescriptor& descriptor, const GemmRun& run) {
  chord_options_t options = chord_options_init();
  options.device = rig.device.ordinal;
  chord_handle_t handle = nullptr;
  CHORD_TRY(c_status(chord_create(&options, &handle)));
  const std::unique_ptr<chord_handle, void (*)(chord_handle_t)> owned_handle(handle, chord_destroy);
  chord_gemm_descriptor_t c_descriptor = chord_gemm_descriptor_init();
  c_descriptor.family = CHORD_FAMILY_GROUPED_MASKED;
  c_descriptor.num_sms = descriptor.num_sms;
  c_descriptor.n = descriptor.n;
  c_descriptor.k = descriptor.k;
  c_descriptor.experts = descriptor.experts;
  c_descriptor.max_m = descriptor.max_m;
  c_descriptor.expected_m = descriptor.expected_m;
  chord_kernel_t kernel = nullptr;
  CHORD_TRY(c_status(chord_prepare_gemm(handle, &c_descriptor, &kernel)));
  const std::unique_ptr<chord_kernel, void (*)(chord_kernel_t)> owned_kernel(kernel,
                                                                             chord_kernel_destroy);
  chord_packed_weight_t weight = chord_packed_weight_init();
  weight.codes = const_cast<void*>(run.arguments.weight.codes);
  weight.scales = const_cast<void*>(run.arguments.weight.scales);
  weight.experts = descriptor.experts;
  weight.n = descriptor.n;
  weight.k = descriptor.k;
  chord_gemm_arguments_t arguments = chord_gemm_arguments_init();
  arguments.activations = run.arguments.activations;
  arguments.output = run.arguments.output;
  arguments.weight = &weight;
  arguments.workspace = run.arguments.workspace;
  arguments.workspace_bytes = run.arguments.workspace_bytes;
  chord_masked_routing_t routing = chord_masked_routing_init();
  routing.masked_m = std::get<MaskedRouting>(run.arguments.routing).masked_m;
  routing.max_m = descriptor.max_m;
  return time_calls(rig, [&] {
    return c_status(chord_launch_masked(kernel, &arguments, &routing, rig.stream.handle()));
  });
}

// Of engines that are new each time; their creation is not counted.
Result<double> time_disk_prepares(const GemmDescriptor& descriptor) {
  constexpr int kEngines = 31;
  Options options;
  options.jit = JitPolicy::never;
  std::vector<double> times;
  for (int i = 0; i < kEngines; ++i) {
    CHORD_TRY(Engine engine, Engine::create(options));
    const auto begin = std::chrono::steady_clock::now();
    CHORD_TRY(const PreparedKernel kernel, engine.prepare(descriptor));
    times.push_back(microseconds_since(begin));
  }
  return median(std::move(times));
}

struct PlanQuestion {
  const char* label;
  GemmDescriptor descriptor;
};

std::vector<PlanQuestion> plan_questions(const Rig& rig) {
  GemmDescriptor indexed;
  indexed.n = 4096;
  indexed.k = 7168;
  indexed.experts = 48;
  GemmDescriptor decode = indexed, prefill = indexed, tensor = indexed;
  decode.profile = "h200_decode_ep8";
  decode.rows = 160;
  prefill.profile = "h200_prefill_ep8";
  prefill.rows = 2000;
  tensor.profile = "h200_tp8";
  tensor.n = 512;
  tensor.experts = 384;
  tensor.rows = 1024;
  GemmDescriptor contiguous = indexed;
  contiguous.family = Family::grouped_contiguous;
  contiguous.rows = 8192;
  return {{"h200_decode_ep8, 160 rows", decode},
          {"h200_prefill_ep8, 2000 rows", prefill},
          {"h200_tp8, 1024 rows", tensor},
          {"grouped_contiguous, 8192 rows", contiguous},
          {"grouped_masked, 1 row expected", small_descriptor(rig)}};
}

Result<PlanCost> time_plans(const Engine& engine, const PlanQuestion& question) {
  constexpr int kPlans = 200;
  PlanCost cost{question.label};
  std::vector<double> times;
  for (int batch = 0; batch < kBatches + 1; ++batch) {
    const int count = batch == 0 ? 1 : kPlans;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      CHORD_TRY(const Decision decision, engine.plan(question.descriptor));
    }
    const double us = microseconds_since(begin) / count;
    if (batch == 0)
      cost.first_us = us;
    else
      times.push_back(us);
  }
  cost.plan_us = median(std::move(times));
  return cost;
}

}  // namespace

Result<HostCost> measure_host_cost(Rig& rig) {
  const GemmDescriptor descriptor = small_descriptor(rig);
  CHORD_TRY(const PreparedKernel kernel, rig.engine.prepare(descriptor));
  CHORD_TRY(const Weights weights,
            Weights::make(rig, {.experts = 1, .n = descriptor.n, .k = descriptor.k}, {}));
  CHORD_TRY(const GemmRun run, GemmRun::make(rig, kernel, weights, masked({0}, 8), {}));
  const PreparedKernel::State& state = kernel.state();
  abi::GemmParams params{};
  CHORD_TRY(launch::fill_params(state.shape, run.arguments, params));
  CHORD_TRY(launch::encode_tensor_maps(*state.driver, state.shape, run.arguments.weight, params));
  const launch::Grid grid{static_cast<unsigned>(state.shape.ctas),
                          static_cast<unsigned>(state.facts.threads),
                          static_cast<unsigned>(state.facts.shared_bytes), false};
  const cuda::CUstream stream = rig.stream.handle();

  HostCost cost;
  CHORD_TRY(cost.bare_launch_us, time_calls(rig, [&] {
              return launch::enqueue(*state.driver, state.module->function(), grid, &params,
                                     stream);
            }));
  CHORD_TRY(cost.launch_us, time_calls(rig, [&] { return run.launch(stream); }));
  CHORD_TRY(cost.c_launch_us, time_c_launches(rig, descriptor, run));
  CHORD_TRY(cost.memo_prepare_us, time_calls(rig, [&]() -> Status {
              CHORD_TRY(const PreparedKernel again, rig.engine.prepare(descriptor));
              return {};
            }));
  CHORD_TRY(cost.disk_prepare_us, time_disk_prepares(descriptor));
  for (const PlanQuestion& question : plan_questions(rig)) {
    CHORD_TRY(PlanCost plan, time_plans(rig.engine, question));
    cost.plans.push_back(std::move(plan));
  }
  CHORD_TRY(rig.stream.synchronize());
  return cost;
}

}  // namespace chord::bench
