// Parameter structs of the small kernels around the two GEMMs of a MoE layer, passed whole by
// value.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::abi {

enum class LogitType : i32 { f32 = 0, bf16 = 1 };
enum class Scoring : i32 { sigmoid = 0, softmax = 1 };

inline constexpr i32 kGateWarps = 4;  // of one CTA: a token each

struct GateParams {
  const void* logits;            // [tokens, experts]
  const float* correction_bias;  // [experts] or null
  i32* ids;                      // [tokens, slots]
  float* weights;                // [tokens, slots]
  i64 tokens;
  i32 experts;
  i32 top_k;
  i32 slots;  // top_k, and one more with a shared expert, whose id is `experts` and weight 1
  LogitType logit_type;
  Scoring scoring;
  i32 renormalise;
  float scale;
};

// What becomes of routes to experts that expert_map calls -1.
enum class ForeignExperts : i32 {
  skip = 0,  // they take no block
  mark = 1,  // their blocks are there, with expert id -1
};

enum class AlignPass : i32 { place = 0, count = 1 };

struct AlignParams {
  const i32* ids;         // [num_ids]
  const i32* expert_map;  // [experts] or null
  i32* sorted_ids;
  i32* expert_ids;
  i32* num_tokens_padded;
  i32* counts;  // [chunks][experts], where there is more than one chunk
  i64 num_ids;
  i32 experts;
  i32 block_m;
  i32 chunks;
  ForeignExperts foreign;
  AlignPass pass;
  i32 reserved;
};

// Dynamic shared memory: what each warp has of each expert, and where each expert begins.
inline constexpr i32 kAlignThreads = 1024;
inline constexpr i32 kAlignWarps = kAlignThreads / 32;
inline constexpr i32 kAlignChunk = 4096;  // ids of one CTA
inline constexpr i32 kMaxAlignedExperts = 1024;

constexpr i64 align_chunks(i64 num_ids) {
  return num_ids <= kAlignChunk ? 1 : ceil_div(num_ids, kAlignChunk);
}
constexpr i64 align_shared_bytes() { return kMaxAlignedExperts * (2 * kAlignWarps + 4); }

// Rows that are left alone: of ids outside [0, experts), or that expert_map calls -1. Null ids: no
// row is.
struct RowFilter {
  const i32* ids;
  const i32* expert_map;
  i32 experts;
  i32 reserved;
};

struct SwigluParams {
  const void* gate_up;  // BF16 [rows, 2 * columns], gate first
  void* output;         // BF16 [rows, columns]
  RowFilter filter;
  i64 rows;
  i32 columns;
  i32 reserved;
};

struct CombineParams {
  const void* rows;      // BF16 [tokens * slots, columns]
  const float* weights;  // [tokens * slots] or null: 1
  void* output;          // BF16 [tokens, columns]
  RowFilter filter;
  i64 tokens;
  i32 slots;
  i32 columns;
};

}  // namespace chord::abi
