// One layer on the GPU, as an engine runs it: every buffer and kernel is there before the first
// forward, and a forward only enqueues. The same object is captured into a graph, replayed, and
// timed part by part.
//
//   CHORD_TRY(auto run, LayerRun::make(rig, kernels, weights, question, rule, Fused::both));
//   CHORD_TRY(run->set_input(x, logits, bias));
//   CHORD_TRY(const auto graph, bench::Graph::capture(rig, run->whole()));
//   CHORD_TRY(graph.launch(rig.stream.handle()));
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/timing.h"
#include "tools/examples/layer_plan.h"
#include "tools/examples/layer_weights.h"

namespace chord::examples {

struct ForwardOptions {
  Fused fused = Fused::none;
  bool programmatic_dependent_launch = false;
};

class LayerRun {
 public:
  // Plans, prepares (compiles or reads the cache) and allocates.
  static Result<std::unique_ptr<LayerRun>> make(bench::Rig& rig, const LayerKernels& kernels,
                                                const LayerWeights& weights,
                                                const LayerQuestion& question,
                                                const RoutingRule& rule,
                                                const ForwardOptions& options);

  // x BF16 [tokens, hidden], logits [tokens, all experts].
  Status set_input(const std::vector<std::uint16_t>& x, const std::vector<float>& logits,
                   const std::vector<float>& bias);
  // NaN into everything that a forward writes, so that a row that is read unwritten shows.
  Status poison();

  // gate, align, gate/up GEMM, SwiGLU, down GEMM, weighted sum; fused parts fall away.
  const std::vector<std::pair<std::string, bench::Launch>>& parts() const { return parts_; }
  bench::Launch whole() const;

  const LayerPlan& plan() const { return plan_; }
  Fused fused() const { return options_.fused; }
  // These wait for nothing: the caller has synchronised.
  Result<std::vector<std::uint16_t>> output() const;  // [tokens, hidden]
  Result<std::vector<std::int32_t>> chosen() const;   // [tokens, slots], numbers of the model
  Result<std::vector<float>> chosen_weights() const;  // [tokens, slots]

 private:
  LayerRun(bench::Rig& rig, const LayerKernels& kernels, const LayerQuestion& question,
           const RoutingRule& rule, const ForwardOptions& options)
      : rig_(rig), kernels_(kernels), question_(question), rule_(rule), options_(options) {}

  Status prepare();
  Status allocate();
  Status set_expert_map();
  Status fill_gemms(const LayerWeights& weights);
  void list_parts();

  std::int64_t routes() const { return question_.tokens * question_.slots(); }
  int model_experts() const;  // the shared one included
  GateArguments gate() const;
  AlignArguments align() const;
  IndexedRouting routing(int top_k) const;
  RowFilter filter() const;
  SwigluArguments swiglu() const;
  CombineArguments combine() const;

  bench::Rig& rig_;
  LayerKernels kernels_;
  LayerQuestion question_;
  RoutingRule rule_;
  ForwardOptions options_;
  LayerPlan plan_;
  std::vector<PreparedKernel> gemms_;  // gate/up, down
  GemmArguments gate_up_, down_;
  std::int64_t capacity_ = 0;
  std::vector<std::pair<std::string, bench::Launch>> parts_;

  cuda::DeviceBuffer x_, logits_, bias_, expert_map_;                  // inputs
  cuda::DeviceBuffer ids_, weights_;                                   // of the gate
  cuda::DeviceBuffer sorted_ids_, expert_ids_, padded_, align_space_;  // of the alignment
  cuda::DeviceBuffer fused_rows_, inner_rows_, down_rows_, output_;    // activations
  cuda::DeviceBuffer gate_up_space_, down_space_;
};

}  // namespace chord::examples
