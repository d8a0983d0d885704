// From a deployment to the closed list of kernels that it can ask for.
#pragma once

#include <vector>

#include "chord/descriptor.h"
#include "chord/overrides.h"
#include "chord/schedule.h"
#include "chord/status.h"

namespace chord::heuristics {

// The schedule of a masked kernel does not depend on max_m, and max_m is a run-time argument.
inline constexpr std::int64_t kDeploymentMaxM = 4096;

// Every decision whose kernel differs in architecture, family, N, K or kernel fields, for every
// architecture, role, family and projection, in this order and then by rows. `min_rows`..`max_rows`
// are routed rows (indexed), rows of the tensor (grouped_contiguous) or expected_m
// (grouped_masked). Each decision is solved at the first size of the range that needs it. The
// grouped families have one heuristic for all roles, so they do not repeat per role.
Result<std::vector<Decision>> expand(const Deployment& deployment, const Overrides& overrides,
                                     Policy policy);

}  // namespace chord::heuristics
