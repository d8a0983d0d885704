// From the sums of a warp to rows of the output: turned round in a few KB of shared memory that
// only this warp uses, then stored 16 bytes a lane. A lane holds two tokens of one weight row; the
// output wants neighbouring weight rows of one token.
//
// A warp's strips lie side by side, so it stores 32 * strips neighbouring bytes of a row and needs
// no other warp. (One bulk copy per row was measured to delay the loads behind it by up to 19 %.)
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/bf16x2.cuh"
#include "kernels/ptx/memory.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;
using abi::Schedule;
using abi::u32;

// `rows` in shared memory: the output row of every token of the tile, negative for none.
template <Schedule S, i32 Strips, i32 Steps>
inline void store_rows(const float (&acc)[Strips][Steps][4], float factor, u32 staging, u32 rows,
                       char* output, i64 row_bytes, bool has_columns, i32 lane) {
  constexpr i32 kPitch = static_cast<i32>(abi::staging_row_bytes(S));
  constexpr i32 kChunkSteps = abi::kStagingRows / 8;
  constexpr i32 kLanesPerRow = 2 * Strips;
  constexpr i32 kRowsPerPass = 32 / kLanesPerRow;
  const u32 corner = staging + ((lane >> 4) * 8 + (lane & 7)) * kPitch + ((lane >> 3) & 1) * 16;
  const i32 row_of_lane = lane / kLanesPerRow;
  const i32 chunk_of_lane = lane % kLanesPerRow;
#pragma unroll
  for (i32 first = 0; first < Steps; first += kChunkSteps) {
    constexpr auto least = [](i32 a, i32 b) { return a < b ? a : b; };
    const i32 steps = least(kChunkSteps, Steps - first);
    __syncwarp();
#pragma unroll
    for (i32 n = 0; n < steps; n += 2) {
#pragma unroll
      for (i32 s = 0; s < Strips; ++s) {
        const auto pair = [&](i32 step, i32 i) {
          return ptx::cvt_rn_bf16x2(acc[s][step][i + 1] * factor, acc[s][step][i] * factor);
        };
        const u32 to = corner + n * 8 * kPitch + s * 32;
        const i32 step = first + n;
        if (n + 1 < steps)
          ptx::stmatrix_x4_trans(to, pair(step, 0), pair(step, 2), pair(step + 1, 0),
                                 pair(step + 1, 2));
        else
          ptx::stmatrix_x2_trans(to, pair(step, 0), pair(step, 2));
      }
    }
    __syncwarp();
#pragma unroll
    for (i32 r = 0; r < steps * 8; r += kRowsPerPass) {
      const i32 row = r + row_of_lane;
      if (row >= steps * 8) continue;
      const i32 to = ptx::ld_shared_i32(rows + (first * 8 + row) * 4);
      const ptx::U32x4 part = ptx::ld_shared_v4(staging + row * kPitch + chunk_of_lane * 16);
      if (to >= 0 && has_columns)
        ptx::st_global_v4(output + to * row_bytes + chunk_of_lane * 16, part);
    }
  }
}

}  // namespace chord::device
