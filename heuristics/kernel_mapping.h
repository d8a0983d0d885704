// From any published schedule to kernel fields that run, and what of the schedule they do not
// honour. Pure; total: the only errors are pinned kernel fields that can not run.
#pragma once

#include <vector>

#include "chord/overrides.h"
#include "chord/schedule.h"
#include "chord/status.h"

namespace chord::heuristics {

struct KernelMapping {
  KernelSchedule kernel;
  std::vector<Unhonoured> unhonoured;
};

// The most rows per expert that the mma kernel takes on Hopper, where rows can not stay in shared
// memory.
inline constexpr int kMmaRows = 16;
int most_mma_rows(const GemmDescriptor& descriptor);  // where they can as well

// Rows (or expected_m) behind which the kernel's tile_m can change.
std::vector<std::int64_t> tile_limits(const GemmDescriptor& descriptor);

// Keeps block_m; tile, stages and the rest follow from it, from the rows per expert and from the
// shape unless pinned.
Result<KernelSchedule> kernel_fields(const GemmDescriptor& descriptor,
                                     const PublishedSchedule& schedule, const Overrides& pins);

// Every published field that differs from what the kernel does, with both values and the reason.
std::vector<Unhonoured> unhonoured_fields(const PublishedSchedule& schedule,
                                          const KernelSchedule& kernel);

Result<KernelMapping> map_to_kernel(const GemmDescriptor& descriptor,
                                    const PublishedSchedule& schedule, const Overrides& overrides);

}  // namespace chord::heuristics
