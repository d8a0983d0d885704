// Measures one case: right first, then its time, and beside it a pure read of the same bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "tools/bench/ablation.h"
#include "tools/bench/bench_case.h"
#include "tools/bench/cublas.h"
#include "tools/bench/gemm_run.h"
#include "tools/bench/timing.h"

namespace chord::bench {

struct MeasureOptions {
  int iterations = 60;
  Flush flush = Flush::write;
  bool check_only = false;
  bool graph = false;
  bool cublas = false;
  bool complete = false;  // read flush, graph and published policy as well
  bool ablation = false;  // the kernel with parts of its main loop taken away as well
};

struct Measurement {
  BenchCase one;
  Decision decision;
  std::string key;
  std::string kernel_digest;
  std::string compiler;
  Comparison comparison;
  std::int64_t bytes = 0;       // moved at least
  std::int64_t operations = 0;  // of valid rows

  // Empty when not asked for, or when the result is wrong.
  std::optional<Sample> time, read;
  std::optional<Sample> graph;
  std::optional<Sample> read_flush_time, read_flush_read;  // complete only
  std::optional<Sample> published_policy;                  // complete only
  std::vector<AblationTime> ablations;
  std::optional<Sample> cublas;
  std::string cublas_missing;  // why there is none
};

// Keeps weights between cases: the largest number of experts of every (N, K).
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> create(Rig& rig, const MeasureOptions& options,
                                               const std::vector<BenchCase>& cases);

  Result<Measurement> measure(const BenchCase& one);

 private:
  Bench(Rig& rig, const MeasureOptions& options, Timer timer)
      : rig_(rig), options_(options), timer_(std::move(timer)) {}

  Result<const Weights*> weights_of(const BenchCase& one);
  Result<GemmRun> make_run(Engine& engine, const BenchCase& one, Decision& decision,
                           std::optional<PreparedKernel>& kernel);
  Result<Sample> time_read(const GemmRun& run, Flush flush);
  Status measure_times(GemmRun& run, Measurement& found);
  Status measure_complete(GemmRun& run, Measurement& found);
  Status measure_cublas(Measurement& found);

  Rig& rig_;
  const MeasureOptions options_;
  Timer timer_;
  std::unique_ptr<Engine> published_;  // an engine with the published policy
  std::optional<Result<Cublas>> cublas_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> most_experts_;
  std::map<std::pair<std::int64_t, std::int64_t>, Weights> weights_;
};

// Digest of the device text that a decision's kernel is made of.
Result<std::string> kernel_digest(const Decision& decision);

}  // namespace chord::bench
