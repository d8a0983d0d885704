// The kernel with work of its main loop taken away (device/ablation.cuh): which part takes the
// time? Everything else is the kernel's own: plan, loads, split tiles, stores, grid, parameters.
// Results are wrong by design, so they go to an output of their own and are never compared.
#pragma once

#include <vector>

#include "tools/bench/gemm_run.h"
#include "tools/bench/timing.h"

namespace chord::bench {

enum class Ablation {
  loads,           // stages are awaited and handed back, nothing of them is read
  dequantisation,  // loads, reads of shared memory and dequantisation
  mma,             // loads, reads of shared memory and mma, with raw codes for weights
};
inline constexpr Ablation kAblations[] = {Ablation::loads, Ablation::dequantisation, Ablation::mma};

const char* name(Ablation ablation);

// The kernel of a decision with that main loop in the place of its own.
Result<cubin::Recipe> ablation_recipe(Ablation ablation, const Decision& decision);

struct AblationTime {
  Ablation ablation = Ablation::loads;
  Sample time;
};

// Launches every ablation as `run` launches its kernel. Fails if one of them leaves a flag of the
// workspace behind.
Result<std::vector<AblationTime>> time_ablations(Rig& rig, const GemmRun& run,
                                                 const Decision& decision, Timer& timer,
                                                 Flush flush, int iterations);

}  // namespace chord::bench
