// What becomes of finished sums before they are rounded: SwiGLU of gate and up, or the weight of
// each row. On FP32 sums, so that one rounding is left.
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/memory.cuh"
#include "kernels/tile/activation.cuh"
#include "kernels/tile/dequant.cuh"

namespace chord::device {

using abi::Schedule;

// A strip of RowOrder::gate_up: elements 0 and 1 are gates of two tokens, 2 and 3 the ups. What is
// stored is still multiplied by output_factor, so only the gate takes it here.
template <Schedule S>
inline float swiglu(const float (&sums)[4], i32 i) {
  return silu(sums[i] * output_factor(S.dequantisation)) * sums[i + 2];
}

// Elements 0 and 1 of every strip become the result.
template <Schedule S, i32 Strips, i32 Steps>
inline void swiglu_in_place(float (&acc)[Strips][Steps][4]) {
#pragma unroll
  for (i32 s = 0; s < Strips; ++s)
#pragma unroll
    for (i32 n = 0; n < Steps; ++n) {
      acc[s][n][0] = swiglu<S>(acc[s][n], 0);
      acc[s][n][1] = swiglu<S>(acc[s][n], 1);
    }
}

// Two strips become one: 16 neighbouring columns of the output.
template <Schedule S, i32 Strips, i32 Steps>
inline void swiglu_pairs(const float (&acc)[Strips][Steps][4], float (&out)[Strips / 2][Steps][4]) {
#pragma unroll
  for (i32 s = 0; s < Strips; ++s)
#pragma unroll
    for (i32 n = 0; n < Steps; ++n) {
      out[s / 2][n][s % 2 * 2] = swiglu<S>(acc[s][n], 0);
      out[s / 2][n][s % 2 * 2 + 1] = swiglu<S>(acc[s][n], 1);
    }
}

// `rows` in shared memory: the output row of every token of the first `steps` steps, negative for
// none. A few loads leave together, as each costs the latency of the L2.
template <i32 Strips, i32 Steps>
inline void weigh_rows(float (&acc)[Strips][Steps][4], u32 rows, const float* weights, i32 steps,
                       i32 lane) {
  constexpr i32 kBatch = 4;
#pragma unroll
  for (i32 first = 0; first < Steps; first += kBatch) {
    float weight[kBatch][2];
#pragma unroll
    for (i32 i = 0; i < kBatch; ++i) {
      const i32 n = first + i;
      const bool wanted = n < Steps && n < steps;
      const ptx::U32x2 row = ptx::ld_shared_v2(rows + ((wanted ? n : 0) * 8 + (lane & 3) * 2) * 4);
      const i32 row0 = static_cast<i32>(row.x), row1 = static_cast<i32>(row.y);
      weight[i][0] = ptx::ld_global_cg_f32_if(wanted && row0 >= 0, weights + row0);
      weight[i][1] = ptx::ld_global_cg_f32_if(wanted && row1 >= 0, weights + row1);
    }
#pragma unroll
    for (i32 i = 0; i < kBatch; ++i) {
      if (first + i >= Steps) continue;
#pragma unroll
      for (i32 s = 0; s < Strips; ++s)
#pragma unroll
        for (i32 j = 0; j < 4; ++j) acc[s][first + i][j] *= weight[i][j % 2];
    }
  }
}

}  // namespace chord::device
