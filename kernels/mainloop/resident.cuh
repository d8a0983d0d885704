// The loop over the panels of a tile whose rows lie in shared memory with all of K. A warpgroup
// takes every other panel: its weights and scales of the whole K go into registers at once, so that
// a stage is free again after the first wgmma; then it multiplies, and stores while the other
// warpgroup multiplies.
//
// While one k16 step (or two, of one strip) is multiplied, the next is dequantised into other
// registers. wgmma's registers are never written in flight.
#pragma once

#include "kernels/ptx/wgmma.cuh"
#include "kernels/tile/dequant.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/strip_place.cuh"
#include "kernels/tile/swizzle.cuh"

namespace chord::device {

template <Schedule S, i32 Width>
class ResidentMainloop {
 public:
  static constexpr i32 kStrips = abi::warp_strips(S);
  static constexpr i32 kSteps = Width / 8;
  static constexpr Dequantisation kForm = S.dequantisation;
  using Accumulators = float[kStrips][kSteps][4];

  // The weights of a panel, out of its stage.
  void load(const Ring<S>& ring, const RingPosition<S>& at, i32 warp, i32 lane) {
    const StripPlace<S> place = StripPlace<S>::in_stage(warp, lane) + ring.stage(at.slot);
#pragma unroll
    for (i32 q = 0; q < S.slices_per_stage; ++q)
#pragma unroll
      for (i32 s = 0; s < kStrips; ++s) {
        codes_[q][s] = place.load_codes(q, s);
        stored_[q][s] = place.load_scales(q, s);
      }
  }

  // The sums of a panel, with the rows at `rows`. Calls begin() before the first wgmma, taken()
  // when all weights are known to be in registers, issued() behind the last wgmma; the sums are
  // there after finish().
  template <class Begin, class Taken, class Issued>
  void run(Accumulators& acc, u32 rows, const Begin& begin, const Taken& taken,
           const Issued& issued) {
    Fragment a[2][kGroup][kStrips];
    dequantise_group<0>(a[0]);
    begin();
    multiply<0>(acc, a, rows, taken);
    issued();
  }
  static void finish() { ptx::wgmma_wait_group<0>(); }

 private:
  static constexpr i32 kGroup = kStrips == 1 ? 2 : 1;  // k16 steps sent off together
  static constexpr i32 kGroups = S.slices_per_stage * 4 / kGroup;

  using Fragment = u32[4];

  template <i32 Group>
  void dequantise_group(Fragment (&a)[kGroup][kStrips]) {
    dequantise_step<Group * kGroup>(a[0]);
    if constexpr (kGroup == 2) dequantise_step<Group * kGroup + 1>(a[1]);
  }
  template <i32 Step>
  void dequantise_step(Fragment (&a)[kStrips]) {
    constexpr i32 kSlice = Step / 4, kWord = Step % 4;
#pragma unroll
    for (i32 s = 0; s < kStrips; ++s) {
      if (kWord == 0)
        scales_[s] = prepare_scales<kForm>(stored_[kSlice][s].x, stored_[kSlice][s].y);
      const ptx::U32x4& codes = codes_[kSlice][s];
      const u32 word = kWord == 0 ? codes.x : kWord == 1 ? codes.y : kWord == 2 ? codes.z : codes.w;
      dequantise<kForm, kWord / 2>(a[s], word, scales_[s]);
    }
  }

  template <i32 Group, class Taken>
  void multiply(Accumulators& acc, Fragment (&a)[2][kGroup][kStrips], u32 rows,
                const Taken& taken) {
    ptx::wgmma_fence();
#pragma unroll
    for (i32 i = 0; i < kGroup; ++i) {
      constexpr i32 kFirst = Group * kGroup;
      const i32 step = kFirst + i;
      const u32 b =
          ptx::wgmma_descriptor_swizzle_128(rows + step / 4 * (Width * kActivationRowBytes)) +
          2 * (step % 4);
#pragma unroll
      for (i32 s = 0; s < kStrips; ++s) {
        if (step == 0)
          ptx::wgmma_m64k16_bf16<kSteps, false>(acc[s], a[Group % 2][i][s], b);
        else
          ptx::wgmma_m64k16_bf16<kSteps>(acc[s], a[Group % 2][i][s], b);
      }
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if constexpr (Group == 0) taken();
    if constexpr (Group + 1 < kGroups) {
      dequantise_group<Group + 1>(a[(Group + 1) % 2]);
      multiply<Group + 1>(acc, a, rows, taken);
    }
  }

  ptx::U32x4 codes_[S.slices_per_stage][kStrips];
  ptx::U32x2 stored_[S.slices_per_stage][kStrips];
  StripScales scales_[kStrips];
};

}  // namespace chord::device
