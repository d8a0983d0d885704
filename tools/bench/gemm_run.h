// One GEMM with its tensors in device memory: launch it, compare it with the reference.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/device/params.h"
#include "tools/bench/rig.h"
#include "tools/bench/routing.h"
#include "tools/bench/weights.h"

namespace chord::bench {

// An output against the reference, in the terms of the contract.
struct Comparison {
  std::int64_t rows = 0;  // compared
  double rel_l2 = 0;      // over the whole output
  double worst_row_l2 = 0;
  std::int64_t worst_row = -1;  // row of the output
  double worst_expert_l2 = 0;
  std::int64_t worst_expert = -1;
  std::int64_t outliers = 0;    // elements further than 2 BF16 ulps + 1e-2 * row RMS
  std::int64_t unwritten = 0;   // elements of owned rows that still hold the poison
  std::int64_t non_finite = 0;  // finite where NaN or Inf belongs, or the other way round
  std::int64_t changed = 0;     // elements written in rows that nobody owns
  std::int64_t flags_left = 0;  // bytes of the workspace's flags that are not zero again

  // What breaks the contract; empty if nothing does.
  std::string violation() const;
};

// Sums per-row errors up. `owned` and `errors` go together; `changed` and `flags_left` stay 0.
Comparison summarise(const std::vector<OwnedRow>& owned, const std::vector<RowError>& errors);

struct RunOptions {
  std::uint64_t seed = 7;    // of the activations
  std::int64_t experts = 0;  // the first experts of the weight; 0: all
};

class GemmRun {
 public:
  static Result<GemmRun> make(Rig& rig, const PreparedKernel& kernel, const Weights& weights,
                              Routing routing, const RunOptions& options);

  // Enqueues one launch.
  Status launch(cuda::CUstream stream) const;
  // The same launch of another kernel: grid, shared memory, parameters and workspace are those of
  // this one, only the output is another.
  Status launch_other(cuda::CUfunction function, void* other_output, cuda::CUstream stream) const;
  // Fills the output with poison; waits.
  Status poison();
  // Waits for nothing: the caller has synchronised.
  Result<Comparison> compare();
  // Poison, launch, wait, compare.
  Result<Comparison> check();
  // Poison, launch, wait, the output's bits.
  Result<std::vector<std::uint16_t>> bits();
  Result<std::vector<std::uint16_t>> download_output() const;
  // Bytes of the workspace's flags that are not zero. Waits for nothing.
  Result<std::int64_t> count_flags_left() const;

  // Bytes that the GEMM reads and writes at least, experts without rows left out, and the
  // operations of its valid rows.
  std::int64_t bytes_moved() const;
  std::int64_t operations() const;
  // A read of as many bytes, from the same tensors.
  ReadParams read_of_same_bytes() const;

  const Routing& routing() const { return routing_; }
  std::int64_t n() const { return kernel_.decision().descriptor.n; }
  std::int64_t output_columns() const {
    return abi::output_columns(kernel_.decision().kernel, static_cast<int>(n()));
  }
  std::int64_t k() const { return kernel_.decision().descriptor.k; }

  // Open to tests, which break them on purpose.
  GemmArguments arguments;
  cuda::DeviceBuffer activations, output, workspace, row_weights;

 private:
  GemmRun(Rig& rig, const PreparedKernel& kernel, const Weights& weights, Routing routing)
      : rig_(&rig), kernel_(kernel), weights_(&weights), routing_(std::move(routing)) {}

  // Rows [first, first + rows) of the list with tiles [first_tile, first_tile + tiles).
  struct Chunk {
    std::int64_t first = 0, rows = 0, first_tile = 0, tiles = 0;
  };

  Status allocate(const RunOptions& options);
  Status upload_routing();
  Status upload_row_weights(std::uint64_t seed);
  Status upload_reference_rows();
  Status compare_chunk(std::size_t chunk);
  Status finish_expected(const Chunk& chunk);
  Result<std::int64_t> count_changed();
  std::int64_t active_experts() const;

  Rig* rig_;
  PreparedKernel kernel_;
  const Weights* weights_;
  Routing routing_;
  cuda::DeviceBuffer sorted_ids_, expert_ids_, num_tokens_padded_, groups_;
  cuda::DeviceBuffer sources_, outputs_, tiles_, is_owned_, expected_, errors_, changed_, sink_;
  std::vector<Chunk> chunks_;
};

}  // namespace chord::bench
