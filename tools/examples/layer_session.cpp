// The order of an engine's life: weights once, then a graph per form of the forward.
#include "tools/examples/layer_session.h"

#include <algorithm>
#include <thread>

#include "tools/examples/synthetic_values.h"

namespace chord::examples {
namespace {

int threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// What goes in, and what has to come out.
struct Case {
  std::vector<std::uint16_t> x;
  Router router;
  std::vector<float> logits;
  std::vector<std::int64_t> sample;
};

// The logits are a small dense product that an engine has already; here the CPU makes them, so that
// the choice of experts is judged on the very numbers that the GPU gets.
Result<Case> make_case(const LayerSource& source, const SessionOptions& options) {
  Case made;
  const std::int64_t hidden = source.shape().hidden;
  const std::int64_t tokens = options.question.tokens;
  made.x = synthetic_activations(options.seed, tokens * hidden);
  CHORD_TRY(made.router, source.router());
  const std::vector<double> logits = reference_logits(made.x, made.router, hidden, threads());
  made.logits.assign(logits.begin(), logits.end());
  const std::int64_t count = std::min(options.check_tokens, tokens);
  for (std::int64_t i = 0; i < count; ++i) made.sample.push_back(i * tokens / count);
  return made;
}

std::vector<std::uint16_t> rows_of(const std::vector<std::uint16_t>& output,
                                   const std::vector<std::int64_t>& sample, std::int64_t columns) {
  std::vector<std::uint16_t> rows;
  for (const std::int64_t token : sample)
    rows.insert(rows.end(), output.begin() + token * columns,
                output.begin() + (token + 1) * columns);
  return rows;
}

class Session {
 public:
  Session(bench::Rig& rig, const LayerSource& source, const SessionOptions& options)
      : rig_(rig), source_(source), options_(options) {
    options_.question.arch = rig.device.arch;
    options_.question.num_sms = rig.device.num_sms;
  }

  Result<SessionReport> run() {
    SessionReport report;
    report.gpu = rig_.device.name;
    CHORD_TRY(case_, make_case(source_, options_));
    const std::vector<Fused> forms = forms_of(options_);
    CHORD_TRY(const LayerWeights weights, LayerWeights::load(rig_, source_, weight_forms(forms)));
    report.load = weights.facts;
    report.checked_tokens = static_cast<std::int64_t>(case_.sample.size());
    CHORD_TRY(const LayerKernels kernels, rig_.engine.prepare_layer_kernels());
    CHORD_TRY(bench::Timer timer, bench::Timer::create(rig_));
    for (const Fused fused : forms) {
      CHORD_TRY(ForwardReport forward, measure(kernels, weights, fused, timer));
      report.forwards.push_back(std::move(forward));
    }
    report.local_routes = local_routes_;
    return report;
  }

 private:
  Result<ForwardReport> measure(const LayerKernels& kernels, const LayerWeights& weights,
                                Fused fused, bench::Timer& timer) {
    CHORD_TRY(const std::unique_ptr<LayerRun> run,
              LayerRun::make(rig_, kernels, weights, options_.question, options_.rule,
                             {fused, options_.programmatic_dependent_launch}));
    CHORD_TRY(run->set_input(case_.x, case_.logits, case_.router.bias));
    ForwardReport report;
    report.fused = fused;
    report.plan = run->plan();
    // Nothing of this forward has been launched before: its first launch is captured.
    CHORD_TRY(const bench::Graph graph, bench::Graph::capture(rig_, run->whole()));
    CHORD_TRY(check(*run, graph, report));
    const auto replay = [&](cuda::CUstream stream) { return graph.launch(stream); };
    CHORD_TRY(report.graph, timer.time(replay, bench::Flush::write, options_.iterations));
    CHORD_TRY(report.eager, timer.time(run->whole(), bench::Flush::write, options_.iterations));
    for (const auto& [part, launch] : run->parts()) {
      CHORD_TRY(const bench::Sample time,
                timer.time(launch, bench::Flush::write, options_.iterations));
      report.parts.push_back({part, time});
    }
    return report;
  }

  Result<std::vector<std::uint16_t>> replayed(LayerRun& run, const bench::Graph& graph) {
    CHORD_TRY(run.poison());
    CHORD_TRY(graph.launch(rig_.stream.handle()));
    CHORD_TRY(rig_.stream.synchronize());
    return run.output();
  }

  Status check(LayerRun& run, const bench::Graph& graph, ForwardReport& report) {
    CHORD_TRY(const std::vector<std::uint16_t> output, replayed(run, graph));
    CHORD_TRY(const std::vector<std::uint16_t> again, replayed(run, graph));
    report.same_bits = output == again;

    const LayerShape& shape = source_.shape();
    Chosen chosen;
    chosen.slots = options_.question.slots();
    CHORD_TRY(chosen.experts, run.chosen());
    CHORD_TRY(chosen.weights, run.chosen_weights());
    CHORD_TRY(const CheckedRoutes checked, check_routes(chosen, case_.logits, case_.router.bias,
                                                        options_.rule, shape.shared_slot));
    report.ties = checked.ties;
    local_routes_ = std::count_if(
        checked.routes.experts.begin(), checked.routes.experts.end(), [&](std::int32_t e) {
          return e >= shape.first_expert && e < shape.first_expert + shape.routed;
        });
    // Both forms are compared with one reference, unless a tie was broken differently.
    if (checked.routes.experts != expected_routes_) {
      CHORD_TRY(expected_,
                reference_layer(source_, case_.x, checked.routes, case_.sample, threads()));
      expected_routes_ = checked.routes.experts;
    }
    report.error =
        layer_error(expected_, rows_of(output, case_.sample, shape.hidden), shape.hidden);
    if (report.error.worst_row >= 0)
      report.error.worst_row = case_.sample[static_cast<std::size_t>(report.error.worst_row)];
    return {};
  }

  bench::Rig& rig_;
  const LayerSource& source_;
  SessionOptions options_;
  Case case_;
  std::vector<double> expected_;
  std::vector<std::int32_t> expected_routes_;
  std::int64_t local_routes_ = 0;
};

}  // namespace

bool SessionReport::is_right() const {
  return std::all_of(forwards.begin(), forwards.end(), [](const ForwardReport& forward) {
    return forward.same_bits && is_within_limits(forward.error);
  });
}

std::vector<Fused> forms_of(const SessionOptions& options) {
  if (options.is_alone || options.fused == Fused::none) return {options.fused};
  return {Fused::none, options.fused};
}

WeightForms weight_forms(const std::vector<Fused>& forms) {
  const bool fused = std::any_of(forms.begin(), forms.end(), fuses_swiglu);
  return {.plain = !std::all_of(forms.begin(), forms.end(), fuses_swiglu), .fused = fused};
}

Result<SessionReport> run_session(bench::Rig& rig, const LayerSource& source,
                                  const SessionOptions& options) {
  return Session(rig, source, options).run();
}

}  // namespace chord::examples
