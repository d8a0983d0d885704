// The reference: straight from checkpoint codes and scales, never from the packed layout.
// w = RN_bf16((code - 8) * scale), products and sums in FP32, in the order of k. One thread has one
// column n and up to eight rows of one expert.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

namespace {

struct Accumulators {
  float sum[kReferenceRows];
};

// Eight weights of column n against eight activations of every row.
inline void accumulate(Accumulators& acc, u32 word, float scale,
                       const u16* const (&rows)[kReferenceRows], i64 column) {
  float weight[8];
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    const i32 code = static_cast<i32>(word >> (4 * i) & 15);
    weight[i] = value_of(bf16_of(static_cast<float>(code - 8) * scale));
  }
#pragma unroll
  for (i32 r = 0; r < kReferenceRows; ++r) {
    const uint4 x = *reinterpret_cast<const uint4*>(rows[r] + column);
    const u32 pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      acc.sum[r] += weight[2 * i] * value_of(pairs[i] & 0xffff);
      acc.sum[r] += weight[2 * i + 1] * value_of(pairs[i] >> 16);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kReferenceThreads)
    chord_kernel(const __grid_constant__ ReferenceParams p) {
  const ReferenceTile tile = p.tiles[blockIdx.x / p.column_blocks];
  const i32 n = static_cast<i32>(blockIdx.x % p.column_blocks * kReferenceThreads + threadIdx.x);
  if (n >= p.n) return;
  const i64 row = static_cast<i64>(tile.expert) * p.n + n;
  const u32* words = p.words + row * (p.k / 8);
  const u16* scales = p.scales + row * (p.k / 32);
  const u16* rows[kReferenceRows];
#pragma unroll
  for (i32 r = 0; r < kReferenceRows; ++r) {
    const i32 entry = tile.first + (r < tile.rows ? r : 0);
    rows[r] = p.activations + static_cast<i64>(p.sources[entry]) * p.k;
  }
  Accumulators acc = {};
  for (i32 group = 0; group < p.k / 32; ++group) {
    const uint4 codes = *reinterpret_cast<const uint4*>(words + 4 * group);
    const float scale = value_of(scales[group]);
    const i64 column = static_cast<i64>(group) * 32;
    accumulate(acc, codes.x, scale, rows, column);
    accumulate(acc, codes.y, scale, rows, column + 8);
    accumulate(acc, codes.z, scale, rows, column + 16);
    accumulate(acc, codes.w, scale, rows, column + 24);
  }
  for (i32 r = 0; r < tile.rows; ++r)
    p.expected[static_cast<i64>(tile.first + r) * p.n + n] = acc.sum[r];
}
