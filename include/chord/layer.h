// The small kernels around the two GEMMs of a MoE layer, for engines that have none of their own:
// top-k gating, alignment of the routing to block_m, SwiGLU, and the sum over the routes of a
// token.
//
//   CHORD_TRY(auto kernels, engine.prepare_layer_kernels());
//   CHORD_TRY(engine.launch(kernels, GateArguments{...}, stream));   // logits -> ids, weights
//   CHORD_TRY(engine.launch(kernels, AlignArguments{...}, stream));  // ids -> IndexedRouting
//   ... gate/up GEMM ...
//   CHORD_TRY(engine.launch(kernels, SwigluArguments{...}, stream));
//   ... down GEMM ...
//   CHORD_TRY(engine.launch(kernels, CombineArguments{...}, stream));
//
// All pointers are device memory; tensors are contiguous row-major. Launches allocate nothing, do
// not synchronise and are legal in graph capture. Same input, same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chord/abi/layer.h"
#include "chord/export.h"
#include "chord/status.h"

namespace chord {

using LogitType = abi::LogitType;
using Scoring = abi::Scoring;
using ForeignExperts = abi::ForeignExperts;

inline constexpr int kMaxTopK = 32;

// Chooses top_k experts of every token by score + correction bias; the lower index wins a tie. The
// weight of a route is its score without the bias, divided by the sum of the chosen scores if
// `renormalise`, times `scale`. (Kimi K2: sigmoid, bias, renormalised, 2.827.)
struct GateArguments {
  const void* logits = nullptr;  // [tokens, experts]
  LogitType logit_type = LogitType::f32;
  const float* correction_bias = nullptr;  // [experts], or null
  std::int64_t tokens = 0;
  int experts = 0;  // of the model, 1 to 1024
  int top_k = 0;    // 1 to kMaxTopK
  Scoring scoring = Scoring::sigmoid;
  bool renormalise = true;
  float scale = 1.0f;
  bool shared_slot = false;     // a route more per token, the last: id `experts`, weight 1
  std::int32_t* ids = nullptr;  // [tokens, top_k], or top_k + 1 with a shared slot
  float* weights = nullptr;     // the same shape
  bool programmatic_dependent_launch = false;
};

// Sorts routes by expert and pads every expert to blocks of block_m: vLLM's moe_align_block_size.
// Ids of one expert are ascending, padding is num_ids. Ids outside [0, experts) take no row (-1: a
// token that is not there). expert_map gives the index of an expert on this GPU, -1 for one that
// lives elsewhere. Of sorted_ids and expert_ids nothing behind num_tokens_padded is written (vLLM
// fills the tail too).
struct AlignArguments {
  const std::int32_t* ids = nullptr;         // [num_ids], num_ids = tokens * top_k
  std::int64_t num_ids = 0;                  // 0 or more; align_capacity at most 2^31 - 1
  int experts = 0;                           // of the model, 1 to 1024, a shared slot included
  const std::int32_t* expert_map = nullptr;  // [experts], or null
  ForeignExperts foreign = ForeignExperts::skip;
  int block_m = 0;                            // a multiple of 8 in 8..256
  std::int32_t* sorted_ids = nullptr;         // [capacity]
  std::int32_t* expert_ids = nullptr;         // [ceil(capacity / block_m)]
  std::int32_t* num_tokens_padded = nullptr;  // one value
  std::int64_t capacity = 0;                  // at least align_capacity
  void* workspace = nullptr;                  // align_workspace_bytes, 16-byte aligned; scratch
  std::size_t workspace_bytes = 0;
  bool programmatic_dependent_launch = false;
};

// The most ids that sorted_ids can have to hold, whatever the routing.
CHORD_API std::int64_t align_capacity(std::int64_t num_ids, int experts, int block_m);
CHORD_API std::size_t align_workspace_bytes(std::int64_t num_ids, int experts);  // 0 for few ids

// Rows of routes that this GPU does not compute are neither read nor written: those whose id is
// outside [0, experts) or mapped to -1. Null ids: all rows count.
struct RowFilter {
  const std::int32_t* ids = nullptr;         // one per row
  const std::int32_t* expert_map = nullptr;  // [experts], or null
  int experts = 0;
};

// output[r, j] = silu(gate_up[r, j]) * gate_up[r, columns + j], in FP32, rounded once. rows *
// columns is below 2^34.
struct SwigluArguments {
  const void* gate_up = nullptr;  // BF16 [rows, 2 * columns], 16-byte aligned
  void* output = nullptr;         // BF16 [rows, columns], 16-byte aligned
  std::int64_t rows = 0;
  int columns = 0;  // a multiple of 8
  RowFilter filter = {};
  bool programmatic_dependent_launch = false;
};

// output[t] = sum over slots s of weights[t, s] * rows[t * slots + s], in FP32 and the order of the
// slots, rounded once. A token none of whose routes count becomes zero. tokens * columns is below
// 2^34.
struct CombineArguments {
  const void* rows = nullptr;      // BF16 [tokens * slots, columns], 16-byte aligned
  const float* weights = nullptr;  // [tokens, slots], or null: rows that are weighted already
  void* output = nullptr;          // BF16 [tokens, columns], 16-byte aligned
  std::int64_t tokens = 0;
  int slots = 0;    // routes of a token: top_k, and one more with a shared slot; 1 to 64
  int columns = 0;  // a multiple of 8
  RowFilter filter = {};
  bool programmatic_dependent_launch = false;
};

// The loaded kernels. Copies share them.
class LayerKernels {
 public:
  struct State;
  explicit LayerKernels(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace chord
