// Who multiplies and stores wide tiles: two warpgroups. Each record names how many rows its
// tile has; the code for the compiled width that takes them runs.
#pragma once

#include "chord/abi/params.h"
#include "chord/abi/problem.h"
#include "kernels/mainloop/wgmma.cuh"
#include "kernels/ptx/control.cuh"
#include "kernels/tile/epilogue.cuh"
#include "kernels/tile/record_reader.cuh"
#include "kernels/tile/reduce.cuh"
#include "kernels/tile/store.cuh"
#include "kernels/tile/widths.cuh"

namespace chord::device {

template <Schedule S, abi::Problem P>
class WgmmaConsumer {
  static constexpr i32 kStrips = abi::warp_strips(S);

 public:
  WgmmaConsumer(const abi::GemmParams& p, const Ring<S>& ring, i32 warp, i32 lane)
      : p_(p), ring_(ring), records_(ring), warp_(warp), lane_(lane) {}

  // Up to the record that ends the window.
  void run() {
    records_.for_each_record([&](u32 record, i32) {
      with_width_of<S>(read_field(record, RecordField::steps) * 8,
                       [&]<i32 Width>() { finish<Width>(record); });
    });
  }

 private:
  // Everything here is computed anew for a tile, from opaque values: kept for the next one it would
  // cost registers that the sums need.
  template <i32 Width>
  void finish(u32 record_address) {
    using Mainloop = WgmmaMainloop<S, Width>;
    const i32 warp = ptx::opaque(warp_), lane = ptx::opaque(lane_);
    const Ring<S> ring = ring_.opaque();
    const u32 record = static_cast<u32>(ptx::opaque(static_cast<i32>(record_address)));
    typename Mainloop::Accumulators acc;
#pragma unroll
    for (i32 s = 0; s < kStrips; ++s)
#pragma unroll
      for (i32 n = 0; n < Width / 8; ++n)
#pragma unroll
        for (i32 i = 0; i < 4; ++i) acc[s][n][i] = 0.0f;
    Mainloop::run(acc, ring, at_, read_field(record, RecordField::stages), warp, lane);
    store<Width>(acc, record);
  }

  template <i32 Width>
  void store(float (&acc)[kStrips][Width / 8][4], u32 record_address) {
    const i32 warp = ptx::opaque(warp_), lane = ptx::opaque(lane_);
    const Ring<S> ring = ring_.opaque();
    const u32 record = static_cast<u32>(ptx::opaque(static_cast<i32>(record_address)));
    const i32 range = read_field(record, RecordField::range);
    const Partials<S, kStrips, Width / 8> partials(p_.partials, p_.flags, warp, lane);
    if (read_field(record, RecordField::is_head)) {
      partials.store(acc, range, Width / 8);
      return;
    }
    const i32 contributors = read_field(record, RecordField::contributors);
    if (contributors > 0) partials.add_few(acc, range + 1, contributors);
    constexpr i32 kColumns = abi::output_columns(S, P.n);
    const i32 column = abi::output_columns(
        S, read_field(record, RecordField::first_column) + warp * kStrips * abi::kStripRows);
    const OutputTile to{record + Ring<S>::kOutputRows,
                        static_cast<char*>(p_.output) + static_cast<i64>(column) * 2,
                        static_cast<i64>(kColumns) * 2, kColumns - column};
    if constexpr (S.epilogue == abi::Epilogue::swiglu) {
      float halved[kStrips / 2][Width / 8][4];
      swiglu_pairs<S>(acc, halved);
      store_rows<S>(halved, ring.staging(warp), to, lane, 0);
    } else {
      if constexpr (S.epilogue == abi::Epilogue::weighted)
        weigh_rows(acc, to.rows, p_.row_weights, Width / 8, lane);
      store_rows<S>(acc, ring.staging(warp), to, lane, 0);
    }
  }

  const abi::GemmParams& p_;
  const Ring<S>& ring_;
  RecordReader<S> records_;
  i32 warp_;
  i32 lane_;
  RingPosition<S> at_;
};

}  // namespace chord::device
