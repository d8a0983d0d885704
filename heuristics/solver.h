// Which schedule. Pure functions of descriptor, overrides and policy: no GPU, no clock, no
// environment; the same input gives the same answer on every machine and thread.
//
//   CHORD_TRY(Decision decision, heuristics::solve(descriptor, {}, Policy::measured));
#pragma once

#include "chord/overrides.h"
#include "chord/schedule.h"
#include "chord/status.h"
#include "heuristics/profile.h"

namespace chord::heuristics {

// With reasons, rejected candidates and what the kernel does not honour.
Result<Decision> solve(const GemmDescriptor& descriptor, const Overrides& overrides, Policy policy);

// Covers (0, 2^30] of rows, or of expected_m (grouped_masked, whatever max_m is); the descriptor's
// own value of that field is not looked at.
Result<ScheduleTable> tabulate(const GemmDescriptor& descriptor, const Overrides& overrides,
                               Policy policy);

// The down projection keeps its own block_n and block_k and takes gate/up's block_m, as if a caller
// had given it: solve(plan.down.descriptor, same overrides) gives plan.down again.
Result<LayerPlan> solve_layer(const LayerDescriptor& layer, const Overrides& overrides,
                              Policy policy);

// True when down has to be given gate/up's block_m. A BM override that changes gate/up's answer
// pins down too; one that only repeats the answer must not change down's.
inline bool down_takes_block_m(const Overrides& overrides, Origin gate_up) {
  return !overrides.block_m || gate_up != Origin::override_value;
}

// The layer's projections as descriptors, before block_m is shared.
struct Projections {
  GemmDescriptor gate_up;
  GemmDescriptor down;
};
Result<Projections> projections(const ProfileSet& profiles, const LayerDescriptor& layer);

// The same with other profiles than the embedded ones.
Result<Decision> solve(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                       const Overrides& overrides, Policy policy);
Result<ScheduleTable> tabulate(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                               const Overrides& overrides, Policy policy);
Result<LayerPlan> solve_layer(const ProfileSet& profiles, const LayerDescriptor& layer,
                              const Overrides& overrides, Policy policy);

}  // namespace chord::heuristics
