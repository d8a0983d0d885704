// Who multiplies and stores: eight warps, each with its own strips of the tile. They read the
// records of the ring, and nothing of the routing.
#pragma once

#include "chord/abi/params.h"
#include "chord/abi/problem.h"
#include "kernels/mainloop/mma.cuh"
#include "kernels/tile/epilogue.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/reduce.cuh"

namespace chord::device {

template <Schedule S, abi::Problem P, class Mainloop>
class Consumer {
  static constexpr i32 kStrips = Mainloop::kStrips;
  static constexpr i32 kSteps = Mainloop::kSteps;

 public:
  Consumer(const abi::GemmParams& p, const Ring<S>& ring, i32 warp, i32 lane)
      : p_(p), ring_(ring), warp_(warp), lane_(lane) {}

  void run() {
    typename Mainloop::Accumulators acc;
    for (u32 index = 0;; index = index == S.stages ? 0 : index + 1) {
      ring_.wait_full(at_);
      TileRecord* record = ring_.record(index);
      if (record->stages == 0) return;
      Mainloop::zero(acc);
      const i32 steps = record->steps;
      multiply<1>(acc, *record, steps);
      if (record->is_head) {
        partials().store(acc, record->range, steps);
      } else {
        if (record->contributors > 0) add_partials(acc, *record, steps);
        if constexpr (S.epilogue == abi::Epilogue::swiglu) swiglu_in_place<S>(acc);
        if constexpr (S.epilogue == abi::Epilogue::weighted)
          weigh_rows(acc, ring_.record_address(index) + Ring<S>::kOutputRows, p_.row_weights, steps,
                     lane_);
        store(acc, record, steps);
      }
    }
  }

 private:
  // Code for 1, 2, 3 and 4 steps and for the widest tile; what lies between runs as the widest.
  // Rows past its own are never stored.
  template <i32 Steps>
  void multiply(typename Mainloop::Accumulators& acc, const TileRecord& record, i32 steps) {
    constexpr i32 kNext = Steps < 4 ? Steps + 1 : 2 * Steps;
    if constexpr (Steps >= kSteps) {
      Mainloop::template run<kSteps>(acc, ring_, at_, record.stages, warp_, lane_);
    } else if (steps <= Steps) {
      Mainloop::template run<Steps>(acc, ring_, at_, record.stages, warp_, lane_);
    } else {
      multiply<kNext>(acc, record, steps);
    }
  }

  Partials<S, kStrips, kSteps> partials() const { return {p_.partials, p_.flags, warp_, lane_}; }
  void add_partials(typename Mainloop::Accumulators& acc, const TileRecord& record,
                    i32 steps) const {
    i32 first = record.range + 1, count = record.contributors;
    if (kFetchesPartial<S> && is_fetched(count)) {
      ring_.wait_fetched();
      partials().add_fetched(acc, ring_.fetched_partial(), warp_, steps);
      ++first;
      --count;
    }
    if (count > 0) partials().add(acc, first, count, steps);
  }

  // A lane holds two tokens of one weight row; the transpose gives it two weight rows of one token,
  // so that four lanes store 16 neighbouring bytes of an output row.
  void store(const typename Mainloop::Accumulators& acc, TileRecord* record, i32 steps) const {
    constexpr float kFactor = output_factor(S.dequantisation);
    constexpr bool kHalves = S.epilogue == abi::Epilogue::swiglu;  // a strip leaves 8 columns
    constexpr i32 kColumns = abi::output_columns(S, P.n);
    const i32* output_rows = Ring<S>::output_rows(record);
    const i32 first =
        abi::output_columns(S, record->first_column + warp_ * kStrips * 16) + (lane_ & 3) * 2;
#pragma unroll
    for (i32 n = 0; n < kSteps; ++n) {
      if (n >= steps) break;
      const i32 row = output_rows[n * 8 + (lane_ >> 2)];
      abi::u16* out = static_cast<abi::u16*>(p_.output) + static_cast<i64>(row) * kColumns;
#pragma unroll
      for (i32 s = 0; s < kStrips; ++s) {
        const i32 column = first + abi::output_columns(S, s * 16);
        const bool is_stored = row >= 0 && column < kColumns;
        const u32 low = ptx::movmatrix_trans(
            ptx::cvt_rn_bf16x2(acc[s][n][1] * kFactor, acc[s][n][0] * kFactor));
        if (is_stored) ptx::st_global_u32(out + column, low);
        if constexpr (!kHalves) {
          const u32 high = ptx::movmatrix_trans(
              ptx::cvt_rn_bf16x2(acc[s][n][3] * kFactor, acc[s][n][2] * kFactor));
          if (is_stored) ptx::st_global_u32(out + column + 8, high);
        }
      }
    }
  }

  const abi::GemmParams& p_;
  const Ring<S>& ring_;
  i32 warp_;
  i32 lane_;
  RingPosition<S> at_;
};

}  // namespace chord::device
