// Times the host side of a launch on a small masked GEMM with no rows.
#include "tools/bench/host_cost.h"

#include <algorithm>
#include <chrono>

#include "src/launch/launch.h"
#include "src/prepared_kernel.h"
#include "tools/bench/gemm_run.h"

namespace chord::bench {
namespace {

constexpr int kBatch = 200;  // launches in flight; the driver's queue holds about a thousand
constexpr int kBatches = 31;

// Median microseconds of one call, the GPU idle before every batch.
template <class Call>
Result<double> time_calls(Rig& rig, const Call& call) {
  std::vector<double> per_call;
  for (int batch = 0; batch < kBatches; ++batch) {
    CHORD_TRY(rig.stream.synchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) CHORD_TRY(call());
    const auto end = std::chrono::steady_clock::now();
    per_call.push_back(std::chrono::duration<double, std::micro>(end - begin).count() / kBatch);
  }
  std::nth_element(per_call.begin(), per_call.begin() + kBatches / 2, per_call.end());
  return per_call[kBatches / 2];
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
  CHORD_TRY(cost.memo_prepare_us, time_calls(rig, [&]() -> Status {
              CHORD_TRY(const PreparedKernel again, rig.engine.prepare(descriptor));
              return {};
            }));
  CHORD_TRY(cost.plan_us, time_calls(rig, [&]() -> Status {
              CHORD_TRY(const Decision decision, rig.engine.plan(descriptor));
              return {};
            }));
  CHORD_TRY(rig.stream.synchronize());
  return cost;
}

}  // namespace chord::bench
