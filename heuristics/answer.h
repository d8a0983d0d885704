// One descriptor to one schedule, with or without reasons: what solve, tables and deployments
// share.
#pragma once

#include "chord/overrides.h"
#include "chord/schedule.h"
#include "chord/status.h"
#include "heuristics/cost_model.h"
#include "heuristics/profile.h"
#include "heuristics/trace.h"

namespace chord::heuristics {

struct Answer {
  PublishedSchedule schedule;
  KernelSchedule kernel;
  Origin origin = Origin::rule;

  bool operator==(const Answer&) const = default;
};

// Everything that an answer depends on but the descriptor.
struct Situation {
  const ProfileSet& profiles;
  const Overrides& overrides;
  Policy policy;
};

// `descriptor` is completed. Overrides that change nothing leave the answer, its origin and its
// reasons as they are without them.
Result<Answer> answer(const Situation& situation, const GemmDescriptor& descriptor, Trace& trace);

// The overrides, completed by the measured row that applies to the descriptor.
Overrides pins_at(const Situation& situation, const GemmDescriptor& descriptor);

// Rows (or expected_m) behind which the answer can change for reasons that are data: the limits of
// profile rows and measured rows, and the rows per expert that a tile is chosen for.
std::vector<std::int64_t> data_limits(const Situation& situation, const GemmDescriptor& descriptor);

GroupedProblem grouped_problem(const GemmDescriptor& descriptor);

}  // namespace chord::heuristics
