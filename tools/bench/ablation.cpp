// Recipes of the ablated kernels, and their timing.
#include "tools/bench/ablation.h"

#include <fmt/format.h>

#include "src/cubin/recipe.h"
#include "src/source/gemm_source.h"

namespace chord::bench {
namespace {

source::MainloopText mainloop_of(Ablation ablation) {
  const char* loop = ablation == Ablation::loads            ? "LoadsOnly"
                     : ablation == Ablation::dequantisation ? "DequantisationOnly"
                                                            : "MmaOnly";
  return {"tools/bench/device/ablation.cuh", fmt::format("chord::bench::{}", loop)};
}

}  // namespace

const char* name(Ablation ablation) {
  switch (ablation) {
    case Ablation::loads:
      return "loads";
    case Ablation::dequantisation:
      return "dequantisation";
    case Ablation::mma:
      return "mma";
  }
  return "unknown";
}

Result<cubin::Recipe> ablation_recipe(Ablation ablation, const Decision& decision) {
  CHORD_TRY(cubin::Recipe recipe, cubin::gemm_recipe(decision));
  recipe.label += fmt::format(", {} only", name(ablation));
  recipe.source_name = fmt::format("{}_only_{}", name(ablation), recipe.source_name);
  recipe.source = source::gemm_source(decision.kernel, source::problem_of(decision.descriptor),
                                      mainloop_of(ablation));
  CHORD_TRY(recipe.files, source::included_files(recipe.source, device_files()));
  recipe.fields.emplace_back("ablation", name(ablation));
  return recipe;
}

Result<std::vector<AblationTime>> time_ablations(Rig& rig, const GemmRun& run,
                                                 const Decision& decision, Timer& timer,
                                                 Flush flush, int iterations) {
  CHORD_TRY(const cuda::DeviceBuffer output, cuda::DeviceBuffer::allocate(run.output.bytes()));
  std::vector<AblationTime> times;
  for (const Ablation ablation : kAblations) {
    CHORD_TRY(const cubin::Recipe recipe, ablation_recipe(ablation, decision));
    CHORD_TRY(const auto module, rig.code->load(recipe));
    const auto launch = [&](cuda::CUstream stream) {
      return run.launch_other(module->function(), output.pointer(), stream);
    };
    CHORD_TRY(const Sample time, timer.time(launch, flush, iterations));
    CHORD_TRY(const std::int64_t left, run.count_flags_left());
    if (left != 0)
      return Error{ErrorCode::internal, recipe.label,
                   fmt::format("{} bytes of workspace flags left", left), ""};
    times.push_back({ablation, time});
  }
  return times;
}

}  // namespace chord::bench
