// Who multiplies and stores where rows stay: two warpgroups, which take panels in turn. They read a
// record per piece, a tile of rows and a run of panels, and nothing of the routing.
#pragma once

#include "chord/abi/params.h"
#include "chord/abi/problem.h"
#include "kernels/mainloop/resident.cuh"
#include "kernels/tile/epilogue.cuh"
#include "kernels/tile/store.cuh"
#include "kernels/tile/widths.cuh"

namespace chord::device {

template <Schedule S, abi::Problem P>
class ResidentConsumer {
  // Wide tiles keep the tensor cores busy by themselves: one warpgroup then stores while the other
  // multiplies. (H200, TP8 down: 258 to 252 us at 85 rows per expert, 183 to 185 at 43.)
  static constexpr bool kTakesTurns = S.tile_m >= 80;
  static constexpr i32 kStoreBarrier = 3, kTurnBarrier = 5;  // and the one after, of group 1

 public:
  ResidentConsumer(const abi::GemmParams& p, const Ring<S>& ring, i32 warp, i32 lane)
      : p_(p), ring_(ring), group_(warp / 4), warp_(warp % 4), lane_(lane) {
    at_.slot = group_;
  }

  // Up to the record that ends the window.
  void run() {
    for (;;) {
      ring_.wait_rows_full(buffer_, buffer_phase_);
      const u32 record = ring_.record_address(record_);
      const i32 panels = read_field(record, RecordField::stages);
      if (first_panel() < panels)
        with_width_of<S>(read_field(record, RecordField::steps) * 8,
                         [&]<i32 Width>() { run_piece<Width>(record, panels); });
      else
        ring_.release_rows(buffer_, lane_);
      panels_ += panels;
      if (++record_ > kBuffers) record_ = 0;
      if (++buffer_ == kBuffers) {
        buffer_ = 0;
        buffer_phase_ ^= 1;
      }
      if (panels == 0) return;
    }
  }

  // After the last window: takes the turn that nobody takes.
  void finish() const {
    if (kTakesTurns && panels_ > 0 && (panels_ & 1) == group_) take_turn(group_);
  }

 private:
  static constexpr u32 kBuffers = static_cast<u32>(abi::row_buffers(S));

  static void take_turn(i32 group) {
    ptx::bar_sync<32 * abi::kConsumerWarps>(kTurnBarrier + group);
  }
  static void give_turn(i32 group) {
    ptx::bar_arrive<32 * abi::kConsumerWarps>(kTurnBarrier + group);
  }

  // This group's first panel of a piece.
  i32 first_panel() const { return (group_ ^ panels_) & 1; }

  // Everything here is computed anew for a piece, from opaque values: kept for the next one it
  // would cost registers that the sums need.
  template <i32 Width>
  void run_piece(u32 record_address, i32 panels) {
    using Mainloop = ResidentMainloop<S, Width>;
    const i32 warp = ptx::opaque(warp_), lane = ptx::opaque(lane_), group = ptx::opaque(group_);
    const Ring<S> ring = ring_.opaque();
    const u32 record = static_cast<u32>(ptx::opaque(static_cast<i32>(record_address)));
    typename Mainloop::Accumulators acc;
#pragma unroll
    for (i32 s = 0; s < Mainloop::kStrips; ++s)
#pragma unroll
      for (i32 n = 0; n < Width / 8; ++n)
#pragma unroll
        for (i32 i = 0; i < 4; ++i) acc[s][n][i] = 0.0f;
    Mainloop mainloop;
    i32 panel = first_panel();
    bool is_first = panels_ + panel == 0;
    const u32 rows = ring.rows(buffer_);
    i32 column = read_field(record, RecordField::first_column) + panel * S.tile_n;
    ring.wait_full(at_);
    mainloop.load(ring, at_, warp, lane);
#pragma unroll 1
    for (;;) {
      mainloop.run(
          acc, rows,
          [&] {
            if (kTakesTurns && !is_first) take_turn(group);
          },
          [&] { ring.release(at_, lane); },
          [&] {
            if (kTakesTurns) give_turn(group ^ 1);
          });
      at_.template advance<abi::kConsumerGroups>();
      is_first = false;
      panel += abi::kConsumerGroups;
      const bool has_more = panel < panels;
      if (has_more) {
        ring.wait_full(at_);
        mainloop.load(ring, at_, warp, lane);
      }
      Mainloop::finish();
      if (!has_more) ring.release_rows(buffer_, lane);
      const OutputTile to{record + Ring<S>::kOutputRows,
                          static_cast<char*>(p_.output) + static_cast<i64>(column) * 2,
                          static_cast<i64>(P.n) * 2, P.n - column};
      if constexpr (S.epilogue == abi::Epilogue::weighted)
        weigh_rows(acc, to.rows, p_.row_weights, Width / 8, lane);
      store_rows<S>(acc, ring.staging(group), to, warp * 32 + lane, kStoreBarrier + group);
      if (!has_more) break;
      column += abi::kConsumerGroups * S.tile_n;
    }
  }

  const abi::GemmParams& p_;
  const Ring<S>& ring_;
  i32 group_, warp_, lane_;
  i32 panels_ = 0;  // of both groups, in all pieces before
  u32 record_ = 0, buffer_ = 0, buffer_phase_ = 0;
  RingPosition<S> at_;
};

}  // namespace chord::device
