// Rows of BF16 in pieces of eight, and which rows count.
#pragma once

#include "chord/abi/layer.h"
#include "kernels/ptx/bf16x2.cuh"
#include "kernels/ptx/memory.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;
using abi::u32;

inline constexpr i32 kPieceColumns = 8;

inline bool counts(const abi::RowFilter& filter, i64 row) {
  if (filter.ids == nullptr) return true;
  const i32 id = filter.ids[row];
  if (id < 0 || id >= filter.experts) return false;
  return filter.expert_map == nullptr || filter.expert_map[id] >= 0;
}

inline float low_of(u32 pair) { return ptx::float_of_bits(pair << 16); }
inline float high_of(u32 pair) { return ptx::float_of_bits(pair & 0xffff0000u); }

inline const char* piece_of(const void* tensor, i64 row, i32 columns, i32 first) {
  return static_cast<const char*>(tensor) + (row * columns + first) * 2;
}
inline char* piece_of(void* tensor, i64 row, i32 columns, i32 first) {
  return static_cast<char*>(tensor) + (row * columns + first) * 2;
}

// This thread's piece; the host keeps their number below 2^31.
inline u32 piece_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

}  // namespace chord::device
