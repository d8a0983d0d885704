// The whole example on one GPU: load, plan, capture, replay, compare, time.
#pragma once

#include <string>
#include <vector>

#include "tools/examples/layer_check.h"
#include "tools/examples/layer_run.h"

namespace chord::examples {

struct SessionOptions {
  LayerQuestion question;  // architecture and number of SMs are the GPU's
  RoutingRule rule;
  Fused fused = Fused::both;
  bool is_alone = false;  // not timed beside the forward that fuses nothing
  bool programmatic_dependent_launch = false;
  int iterations = 60;
  std::int64_t check_tokens = 64;  // of the comparison with the reference
  std::uint64_t seed = 1;          // of the activations
};

struct PartTime {
  std::string part;
  bench::Sample time;
};

// One way to run the layer.
struct ForwardReport {
  Fused fused = Fused::none;
  LayerPlan plan;
  std::int64_t ties = 0;
  LayerError error;
  bool same_bits = false;  // two replays
  bench::Sample graph;     // the whole layer, as a replay of one graph
  bench::Sample eager;     // the same launches without a graph
  std::vector<PartTime> parts;
};

struct SessionReport {
  std::string gpu;
  LoadFacts load;
  std::int64_t local_routes = 0;  // routes to experts of this GPU, the shared slot's not counted
  std::int64_t checked_tokens = 0;
  std::vector<ForwardReport> forwards;

  bool is_right() const;
};

// The forwards that are timed, and the orders of gate/up rows that they need.
std::vector<Fused> forms_of(const SessionOptions& options);
WeightForms weight_forms(const std::vector<Fused>& forms);

// Fails where there is no GPU, or a forward can not be run. A wrong result is in the report.
Result<SessionReport> run_session(bench::Rig& rig, const LayerSource& source,
                                  const SessionOptions& options);

}  // namespace chord::examples
