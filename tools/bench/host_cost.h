// What a launch costs the host: microseconds of a bare driver call, of Engine::launch and of its C
// face, of the ways to a prepared kernel, and of plans.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/rig.h"

namespace chord::bench {

struct PlanCost {
  std::string label;    // "h200_decode_ep8, 160 rows"
  double first_us = 0;  // in this process, with what is built once per number of experts
  double plan_us = 0;   // every later one; nothing of it is remembered
};

struct HostCost {
  double bare_launch_us = 0;   // cuLaunchKernelEx alone
  double launch_us = 0;        // Engine::launch
  double c_launch_us = 0;      // chord_launch_masked
  double memo_prepare_us = 0;  // Engine::prepare of a descriptor that was prepared before
  double disk_prepare_us = 0;  // Engine::prepare of an engine that has the cubin only on disk
  std::vector<PlanCost> plans;
};

// On a layer without rows, so that the GPU is never the slower side. Medians over batches.
Result<HostCost> measure_host_cost(Rig& rig);

}  // namespace chord::bench
