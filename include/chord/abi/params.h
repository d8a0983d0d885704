// The one parameter struct of the entry `chord_kernel`, passed whole by value. Host and device see
// the same bytes; the static_asserts at the end hold the layout.
#pragma once

#include "chord/abi/schedule.h"

namespace chord::abi {

struct alignas(64) TensorMap {
  u64 opaque[16];  // CUtensorMap
};

enum class ContiguousSpelling : i32 { m_indices = 0, offsets32 = 1, offsets64 = 2 };

struct GemmParams {
  TensorMap weights;  // 3-D: {256 x 8 B, K/64, E*N/64}
  TensorMap scales;   // 3-D: {32 x 8 B, K/64, E*N/64}
  // wgmma and resident, rows that lie together: 3-D {64 BF16, rows, K/64}, one map per compiled
  // tile width.
  TensorMap rows_of_width[kMaxWidths];

  const void* activations;  // BF16 [rows, K]
  void* output;             // BF16 [rows, output_columns(schedule, N)]

  const i32* sorted_ids;         // indexed
  const i32* expert_ids;         // indexed, one per block
  const i32* num_tokens_padded;  // indexed, on the device
  const void* groups;            // m_indices, expert_offsets or masked_m
  const float* row_weights;      // Epilogue::weighted: one per output row; indexed: per id

  i64 rows;     // contiguous: rows of the tensor; indexed: ids that fit the buffers (capacity)
  i64 num_ids;  // indexed: T * top_k; an id at or above it is padding
  i64 max_m;    // masked
  i32 experts;
  i32 top_k;  // indexed: source row = id / top_k
  ContiguousSpelling spelling;
  i32 reserved;

  i32* flags;       // workspace: zero before and after every launch
  float* partials;  // workspace: scratch
};

enum class CodeSource : i32 {
  codes_i32 = 0,      // [E, N, K]
  codes_u8 = 1,       // [E, N, K]
  words = 2,          // [E, N, K/8] int32, element i of a word at bits 4i..4i+3
  words_k_major = 3,  // [E, K/8, N] int32
};
enum class ScaleSource : i32 {
  row_major = 0,  // [E, N, K/32]
  k_major = 1,    // [E, K/32, N]
};

struct PackParams {
  const void* codes;
  const u16* scales;  // BF16
  u32* packed_weights;
  u16* packed_scales;
  u64* status;  // kPackStatusClean, or the first scale that can not be packed
  i32 experts;
  i32 n;
  i32 k;
  CodeSource code_source;
  ScaleSource scale_source;
  RowOrder row_order;
};

// The status word: index (expert * N + row) * K/32 + group, its BF16 bits below. The smallest wins
// (atomicMin), so the GPU names the same offender as the CPU.
constexpr u64 kPackStatusClean = ~0ull;
constexpr u64 pack_status(i64 scale_index, u16 bits) {
  return (static_cast<u64>(scale_index) << 16) | bits;
}
constexpr i64 pack_status_index(u64 status) { return static_cast<i64>(status >> 16); }
constexpr u16 pack_status_bits(u64 status) { return static_cast<u16>(status & 0xffff); }

// A code above 15 (codes_i32, codes_u8): the top bit, the index (expert * N + row) * K + k, the
// code below, saturated. Any refused scale is smaller and so wins.
constexpr u64 kPackStatusCode = 1ull << 63;
constexpr u64 pack_code_status(i64 code_index, u32 code) {
  return kPackStatusCode | (static_cast<u64>(code_index) << 16) | (code < 0xffff ? code : 0xffff);
}
constexpr bool is_pack_code_status(u64 status) {
  return status != kPackStatusClean && (status & kPackStatusCode) != 0;
}
constexpr i64 pack_code_status_index(u64 status) {
  return static_cast<i64>((status & ~kPackStatusCode) >> 16);
}

static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) == 64);
static_assert(sizeof(GemmParams) == (2 + kMaxWidths) * 128 + 7 * 8 + 3 * 8 + 4 * 4 + 2 * 8 + 16);

}  // namespace chord::abi
