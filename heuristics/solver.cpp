// The door: completes a descriptor, asks for its answer, keeps the reasons.
#include "heuristics/solver.h"

#include "heuristics/answer.h"
#include "heuristics/kernel_mapping.h"
#include "heuristics/table.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

Result<const ProfileSet*> embedded() {
  const Result<ProfileSet>& set = published_profiles();
  if (!set.ok()) return set.error();
  return &*set;
}

}  // namespace

Result<Decision> solve(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                       const Overrides& overrides, Policy policy) {
  Decision decision;
  CHORD_TRY(decision.descriptor, completed(profiles, descriptor, RowsField::one_size));
  Trace trace(Trace::Keep::everything);
  const Situation situation{profiles, overrides, policy};
  CHORD_TRY(const Answer found, answer(situation, decision.descriptor, trace));
  decision.schedule = found.schedule;
  decision.kernel = found.kernel;
  decision.origin = found.origin;
  decision.reasons = std::move(trace.reasons);
  decision.rejected = std::move(trace.rejected);
  decision.unhonoured = unhonoured_fields(found.schedule, found.kernel);
  return decision;
}

Result<ScheduleTable> tabulate(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                               const Overrides& overrides, Policy policy) {
  CHORD_TRY(const GemmDescriptor complete, completed(profiles, descriptor, RowsField::whole_axis));
  return table(Situation{profiles, overrides, policy}, complete);
}

Result<Decision> solve(const GemmDescriptor& descriptor, const Overrides& overrides,
                       Policy policy) {
  CHORD_TRY(const ProfileSet* profiles, embedded());
  return solve(*profiles, descriptor, overrides, policy);
}

Result<ScheduleTable> tabulate(const GemmDescriptor& descriptor, const Overrides& overrides,
                               Policy policy) {
  CHORD_TRY(const ProfileSet* profiles, embedded());
  return tabulate(*profiles, descriptor, overrides, policy);
}

Result<LayerPlan> solve_layer(const LayerDescriptor& layer, const Overrides& overrides,
                              Policy policy) {
  CHORD_TRY(const ProfileSet* profiles, embedded());
  return solve_layer(*profiles, layer, overrides, policy);
}

}  // namespace chord::heuristics
