// The order of a measurement.
#include "tools/bench/measure.h"

#include <algorithm>

#include "src/cubin/recipe.h"

namespace chord::bench {

Result<std::string> kernel_digest(const Decision& decision) {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  return source::digest(recipe.files);
}

Result<std::unique_ptr<Bench>> Bench::create(Rig& rig, const MeasureOptions& options,
                                             const std::vector<BenchCase>& cases) {
  CHORD_TRY(Timer timer, Timer::create(rig));
  std::unique_ptr<Bench> bench(new Bench(rig, options, std::move(timer)));
  if (options.complete) {
    Options published = rig.engine.options();
    published.policy = Policy::published;
    CHORD_TRY(Engine engine, Engine::create(std::move(published)));
    bench->published_ = std::make_unique<Engine>(std::move(engine));
  }
  for (const BenchCase& one : cases) {
    std::int64_t& most = bench->most_experts_[{one.n, one.k}];
    most = std::max(most, one.experts);
  }
  return bench;
}

Result<const Weights*> Bench::weights_of(const BenchCase& one) {
  const auto at = weights_.find({one.n, one.k});
  if (at != weights_.end()) return &at->second;
  const PackedShape shape{
      .experts = std::max(most_experts_[{one.n, one.k}], one.experts), .n = one.n, .k = one.k};
  CHORD_TRY(Weights weights, Weights::make(rig_, shape, {}));
  return &weights_.emplace(std::pair{one.n, one.k}, std::move(weights)).first->second;
}

Result<GemmRun> Bench::make_run(Engine& engine, const BenchCase& one, Decision& decision,
                                std::optional<PreparedKernel>& kernel) {
  CHORD_TRY(decision, plan_case(engine, one, rig_.device.arch, rig_.device.num_sms));
  CHORD_TRY(kernel, engine.prepare(decision));
  CHORD_TRY(const Weights* weights, weights_of(one));
  return GemmRun::make(rig_, *kernel, *weights, routing_of(one, decision.schedule.block_m),
                       {.seed = 7, .experts = one.experts});
}

Result<Sample> Bench::time_read(const GemmRun& run, Flush flush) {
  const ReadParams read = run.read_of_same_bytes();
  const auto launch = [&](cuda::CUstream stream) {
    return rig_.code->launch(Helper::read, kReadCtas, kReadThreads, &read, stream);
  };
  return timer_.time(launch, flush, options_.iterations);
}

Status Bench::measure_times(GemmRun& run, Measurement& found) {
  const auto launch = [&](cuda::CUstream stream) { return run.launch(stream); };
  CHORD_TRY(found.time, timer_.time(launch, options_.flush, options_.iterations));
  CHORD_TRY(found.read, time_read(run, options_.flush));
  if (!options_.graph && !options_.complete) return {};
  CHORD_TRY(const Graph graph, Graph::capture(rig_, launch));
  const auto replay = [&](cuda::CUstream stream) { return graph.launch(stream); };
  CHORD_TRY(found.graph, timer_.time(replay, options_.flush, options_.iterations));
  return {};
}

Status Bench::measure_complete(GemmRun& run, Measurement& found) {
  const auto launch = [&](cuda::CUstream stream) { return run.launch(stream); };
  CHORD_TRY(found.read_flush_time, timer_.time(launch, Flush::read, options_.iterations));
  CHORD_TRY(found.read_flush_read, time_read(run, Flush::read));
  Decision decision;
  std::optional<PreparedKernel> kernel;
  CHORD_TRY(GemmRun published, make_run(*published_, found.one, decision, kernel));
  CHORD_TRY(const Comparison comparison, published.check());
  if (const std::string violation = comparison.violation(); !violation.empty())
    return Error{ErrorCode::internal, found.one.label() + " under the published policy", violation,
                 ""};
  const auto launch_published = [&](cuda::CUstream stream) { return published.launch(stream); };
  CHORD_TRY(found.published_policy,
            timer_.time(launch_published, Flush::write, options_.iterations));
  return {};
}

Status Bench::measure_cublas(Measurement& found) {
  const BenchCase& one = found.one;
  if (!options_.cublas) {
    found.cublas_missing = "not asked for";
    return {};
  }
  if (one.family == Family::indexed || one.draw != "exact") {
    found.cublas_missing = "no dense twin: experts have different numbers of rows";
    return {};
  }
  if (!cublas_) cublas_.emplace(Cublas::open(rig_.stream.handle()));
  if (!cublas_->ok()) {
    found.cublas_missing = cublas_->error().message();
    return {};
  }
  const std::int64_t rows = one.counts.front();
  const auto filled = [&](std::int64_t values) -> Result<cuda::DeviceBuffer> {
    CHORD_TRY(cuda::DeviceBuffer buffer,
              cuda::DeviceBuffer::allocate(static_cast<std::size_t>(values) * 2));
    const FillActivationsParams fill{static_cast<u16*>(buffer.pointer()), values, 3};
    CHORD_TRY(rig_.code->launch_over(Helper::fill_activations, values, fill, rig_.stream.handle()));
    return buffer;
  };
  CHORD_TRY(const cuda::DeviceBuffer weights, filled(one.experts * one.n * one.k));
  CHORD_TRY(const cuda::DeviceBuffer x, filled(one.experts * rows * one.k));
  CHORD_TRY(const cuda::DeviceBuffer out, filled(one.experts * rows * one.n));
  const auto launch = [&](cuda::CUstream) {
    return (*cublas_)->batched_gemm(static_cast<int>(one.experts), static_cast<int>(rows),
                                    static_cast<int>(one.n), static_cast<int>(one.k), x.pointer(),
                                    weights.pointer(), out.pointer());
  };
  CHORD_TRY(found.cublas, timer_.time(launch, options_.flush, options_.iterations));
  return {};
}

Result<Measurement> Bench::measure(const BenchCase& one) {
  Measurement found;
  found.one = one;
  std::optional<PreparedKernel> kernel;
  CHORD_TRY(GemmRun run, make_run(rig_.engine, one, found.decision, kernel));
  found.key = kernel->key();
  found.compiler = kernel->facts().compiler;
  CHORD_TRY(found.kernel_digest, kernel_digest(found.decision));
  found.bytes = run.bytes_moved();
  found.operations = run.operations();
  CHORD_TRY(found.comparison, run.check());
  const bool is_right = found.comparison.violation().empty();
  if (!is_right || options_.check_only) return found;
  CHORD_TRY(measure_times(run, found));
  if (options_.complete) CHORD_TRY(measure_complete(run, found));
  if (options_.ablation) {
    CHORD_TRY(found.ablations, time_ablations(rig_, run, found.decision, timer_, options_.flush,
                                              options_.iterations));
  }
  CHORD_TRY(measure_cublas(found));
  return found;
}

}  // namespace chord::bench
