// What a launch costs the host: microseconds of a bare driver call, of Engine::launch, and of a
// memo-hit prepare before it, over batches that fit the driver's queue.
#pragma once

#include "tools/bench/rig.h"

namespace chord::bench {

struct HostCost {
  double bare_launch_us = 0;   // cuLaunchKernelEx alone
  double launch_us = 0;        // Engine::launch
  double memo_prepare_us = 0;  // Engine::prepare of a descriptor that was prepared before
  double plan_us = 0;          // Engine::plan, nothing remembered
};

// On a layer without rows, so that the GPU is never the slower side. Medians over batches.
Result<HostCost> measure_host_cost(Rig& rig);

}  // namespace chord::bench
