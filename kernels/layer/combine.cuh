// The sum over the routes of a token: a thread makes eight columns, in FP32 and the order of the
// routes.
#pragma once

#include "kernels/layer/rows.cuh"
#include "kernels/ptx/control.cuh"

namespace chord::device {

struct PieceSum {
  float columns[kPieceColumns] = {};

  void add(const ptx::U32x4& piece, float weight) {
    const u32 pairs[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      columns[2 * i] += weight * low_of(pairs[i]);
      columns[2 * i + 1] += weight * high_of(pairs[i]);
    }
  }
  ptx::U32x4 rounded() const {
    return {ptx::cvt_rn_bf16x2(columns[1], columns[0]), ptx::cvt_rn_bf16x2(columns[3], columns[2]),
            ptx::cvt_rn_bf16x2(columns[5], columns[4]), ptx::cvt_rn_bf16x2(columns[7], columns[6])};
  }
};

inline void combine(const abi::CombineParams& p) {
  constexpr i32 kTogether = 8;  // rows whose loads leave together
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const u32 pieces = static_cast<u32>(p.columns / kPieceColumns);
  const i64 token = piece_index() / pieces;
  const i32 first = static_cast<i32>(piece_index() % pieces) * kPieceColumns;
  if (token >= p.tokens) return;
  PieceSum sum;
  for (i32 begin = 0; begin < p.slots; begin += kTogether) {
    ptx::U32x4 part[kTogether];
    float weight[kTogether];
    bool is_there[kTogether];
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i) {
      const i64 row = token * p.slots + begin + i;
      is_there[i] = begin + i < p.slots && counts(p.filter, row);
      weight[i] = is_there[i] && p.weights != nullptr ? p.weights[row] : 1.0f;
      part[i] = ptx::ld_global_v4_if(is_there[i], piece_of(p.rows, row, p.columns, first));
    }
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i)
      if (is_there[i]) sum.add(part[i], weight[i]);
  }
  ptx::st_global_v4(piece_of(p.output, token, p.columns, first), sum.rounded());
}

}  // namespace chord::device
