// SwiGLU of rows that gate/up has written: a thread makes eight columns.
#pragma once

#include "kernels/layer/rows.cuh"
#include "kernels/ptx/control.cuh"
#include "kernels/tile/activation.cuh"

namespace chord::device {

inline u32 swiglu_pair(u32 gate, u32 up) {
  return ptx::cvt_rn_bf16x2(silu(high_of(gate)) * high_of(up), silu(low_of(gate)) * low_of(up));
}

inline void swiglu(const abi::SwigluParams& p) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const u32 pieces = static_cast<u32>(p.columns / kPieceColumns);
  const i64 row = piece_index() / pieces;
  const i32 first = static_cast<i32>(piece_index() % pieces) * kPieceColumns;
  if (row >= p.rows || !counts(p.filter, row)) return;
  const ptx::U32x4 gate = ptx::ld_global_v4(piece_of(p.gate_up, row, 2 * p.columns, first));
  const ptx::U32x4 up =
      ptx::ld_global_v4(piece_of(p.gate_up, row, 2 * p.columns, p.columns + first));
  ptx::st_global_v4(piece_of(p.output, row, p.columns, first),
                    {swiglu_pair(gate.x, up.x), swiglu_pair(gate.y, up.y),
                     swiglu_pair(gate.z, up.z), swiglu_pair(gate.w, up.w)});
}

}  // namespace chord::device
