// From sums to rows of the output: turned round in a few KB of shared memory that only those who
// store together use, then stored 16 bytes a lane. A lane holds two tokens of one weight row; the
// output wants neighbouring weight rows of one token.
//
// A warp's strips lie side by side, and so do the warps of a warpgroup. A warp by itself stores 32
// * strips neighbouring bytes of a row and waits for nobody; the four of a warpgroup store four
// times as many and meet twice for every staging_rows rows. (One bulk copy per row was measured to
// delay the loads behind it by up to 19 %.)
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/bf16x2.cuh"
#include "kernels/ptx/control.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/tile/dequant.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;
using abi::Schedule;
using abi::u32;

// Where a tile's rows go.
struct OutputTile {
  u32 rows;       // in shared memory: the output row of every token of the tile, negative for none
  char* columns;  // of output row 0, the first that the team stores
  i64 row_bytes;
  i32 wide;  // columns of the output from there on; a multiple of 8
};

// What a team needs to meet: one warp needs nothing.
template <Schedule S>
inline void store_barrier(i32 barrier) {
  if constexpr (abi::store_warps(S) == 1)
    __syncwarp();
  else
    ptx::bar_sync<32 * abi::store_warps(S)>(barrier);
}

// `thread` of the team, whose `staging` it is and whose barrier.
template <Schedule S, i32 Strips, i32 Steps>
inline void store_rows(const float (&acc)[Strips][Steps][4], u32 staging, const OutputTile& to,
                       i32 thread, i32 barrier) {
  constexpr i32 kPitch = static_cast<i32>(abi::staging_row_bytes(S));
  constexpr i32 kChunkSteps = abi::staging_rows(S) / 8;
  constexpr i32 kLanesPerRow = 2 * Strips * abi::store_warps(S);
  constexpr i32 kRowsPerPass = 32 * abi::store_warps(S) / kLanesPerRow;
  constexpr i32 kBatch = 4;  // passes whose loads leave together
  const i32 lane = thread % 32;
  const u32 corner = staging + ((lane >> 4) * 8 + (lane & 7)) * kPitch + ((lane >> 3) & 1) * 16 +
                     thread / 32 * Strips * 32;
  const i32 row_of_lane = thread / kLanesPerRow;
  const i32 chunk_of_lane = thread % kLanesPerRow;
  const bool has_columns = chunk_of_lane * 8 < to.wide;
  char* const columns = to.columns + chunk_of_lane * 16;
#pragma unroll
  for (i32 first = 0; first < Steps; first += kChunkSteps) {
    constexpr auto least = [](i32 a, i32 b) { return a < b ? a : b; };
    const i32 steps = least(kChunkSteps, Steps - first);
    store_barrier<S>(barrier);
#pragma unroll
    for (i32 n = 0; n < steps; n += 2) {
#pragma unroll
      for (i32 s = 0; s < Strips; ++s) {
        const auto pair = [&](i32 step, i32 i) {
          return output_pair<S.dequantisation>(acc[s][step][i], acc[s][step][i + 1]);
        };
        const u32 at = corner + n * 8 * kPitch + s * 32;
        const i32 step = first + n;
        if (n + 1 < steps)
          ptx::stmatrix_x4_trans(at, pair(step, 0), pair(step, 2), pair(step + 1, 0),
                                 pair(step + 1, 2));
        else
          ptx::stmatrix_x2_trans(at, pair(step, 0), pair(step, 2));
      }
    }
    store_barrier<S>(barrier);
    const i32 rows = steps * 8;
#pragma unroll
    for (i32 begin = 0; begin < rows; begin += kBatch * kRowsPerPass) {
      i32 output_row[kBatch];
      ptx::U32x4 part[kBatch];
#pragma unroll
      for (i32 i = 0; i < kBatch; ++i) {
        const i32 row = begin + i * kRowsPerPass + row_of_lane;
        output_row[i] = -1;
        if (begin + i * kRowsPerPass >= rows) continue;
        if (kRowsPerPass > 8 && row >= rows) continue;
        output_row[i] = ptx::ld_shared_i32(to.rows + (first * 8 + row) * 4);
        part[i] = ptx::ld_shared_v4(staging + row * kPitch + chunk_of_lane * 16);
      }
#pragma unroll
      for (i32 i = 0; i < kBatch; ++i)
        if (output_row[i] >= 0 && has_columns)
          ptx::st_global_v4(columns + output_row[i] * to.row_bytes, part[i]);
    }
  }
}

}  // namespace chord::device
