// The loop over K of a wide tile: weights are dequantised into the A registers of wgmma, rows of
// activations are B in shared memory. A consumer warp owns warp_strips strips of 16 weight rows;
// strip s of four warps makes the 64 rows of one instruction, wherever in the tile the strips lie.
//
// While some k16 steps are multiplied, the next is dequantised into other registers; wgmma's
// registers are never written in flight. Where the sums leave room for four fragments, a step is
// sent off before the one ahead of it is known to be done and the next is made meanwhile, so that
// the tensor cores need not wait for it; with two fragments the step ahead is awaited first.
// (ptxas, left to itself, makes either of the two out of two fragments, as the rest of the kernel
// happens to be: 8 % apart at 64 rows.) A stage is handed back when the last of its steps is known
// to be done.
//
// The width is a template argument and sums are zeroed at the start of a tile, not by the first
// instruction: with several widths in a kernel ptxas otherwise keeps all their sums alive.
#pragma once

#include "kernels/ptx/wgmma.cuh"
#include "kernels/tile/dequant.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/strip_place.cuh"
#include "kernels/tile/swizzle.cuh"

namespace chord::device {

// Registers of sums, three fragments, codes and scales, which leave ptxas the rest.
inline constexpr i32 kMostWithFourFragments = 170;

template <Schedule S, i32 Width>
class WgmmaMainloop {
 public:
  static constexpr i32 kStrips = abi::warp_strips(S);
  static constexpr i32 kSteps = Width / 8;
  static constexpr Dequantisation kForm = S.dequantisation;
  using Accumulators = float[kStrips][kSteps][4];

  // The next `stages` stages of the ring.
  static void run(Accumulators& acc, const Ring<S>& ring, RingPosition<S>& at, i32 stages, i32 warp,
                  i32 lane) {
    Fragment a[kFragments][kStrips];
    StripWeights weights[kStrips];
    const StripPlace<S> offsets = StripPlace<S>::in_stage(warp, lane);
    ring.wait_full(at);
    load(weights, offsets, ring.stage(at.slot), 0);
    dequantise_step<0>(a[0], weights);
    bool is_first = true;
    RingPosition<S> before = at;
#pragma unroll 1
    do {
      --stages;
      const RingPosition<S> now = at;
      at.advance();
#pragma unroll
      for (i32 q = 0; q < S.slices_per_stage; ++q) {
        const u32 b = ptx::wgmma_descriptor_swizzle_128(ring.stage(now.slot) +
                                                        q * Width * kActivationRowBytes);
        const auto after_step = [&](i32 step) {
          if (q == 0 && step == 0) ring.release_if(!is_first, before, lane);
        };
        const auto load_next = [&] {
          if (q < S.slices_per_stage - 1) {
            load(weights, offsets, ring.stage(now.slot), q + 1);
          } else if (stages > 0) {
            ring.wait_full(at);
            load(weights, offsets, ring.stage(at.slot), 0);
          }
        };
        multiply<0>(acc, a, weights, b, after_step, load_next);
      }
      before = now;
      is_first = false;
    } while (stages > 0);
    ptx::wgmma_wait_group<0>();
    ring.release(before, lane);
  }

 private:
  // A slice has four steps, so fragments keep their registers from slice to slice.
  static constexpr i32 kFragments = kStrips * (Width / 2 + 20) <= kMostWithFourFragments ? 4 : 2;

  using Fragment = u32[4];

  // Of one strip and slice: 16 bytes of codes and two pairs of scales per lane.
  struct StripWeights {
    ptx::U32x4 codes;
    StripScales scales;
  };

  static void load(StripWeights (&weights)[kStrips], const StripPlace<S>& offsets, u32 stage,
                   i32 slice) {
    const StripPlace<S> at = offsets + stage;
#pragma unroll
    for (i32 s = 0; s < kStrips; ++s) {
      weights[s].codes = at.load_codes(slice, s);
      const ptx::U32x2 stored = at.load_scales(slice, s);
      weights[s].scales = prepare_scales<kForm>(stored.x, stored.y);
    }
  }

  template <i32 Step>
  static void dequantise_step(Fragment (&a)[kStrips], const StripWeights (&weights)[kStrips]) {
#pragma unroll
    for (i32 s = 0; s < kStrips; ++s) {
      const StripWeights& w = weights[s];
      const u32 word = Step == 0   ? w.codes.x
                       : Step == 1 ? w.codes.y
                       : Step == 2 ? w.codes.z
                                   : w.codes.w;
      dequantise<kForm, Step / 2>(a[s], word, w.scales);
    }
  }

  // Step `Step` of a slice and those after it. Each is sent off; then, when the step that used its
  // registers is done, the next is made. The codes of the next slice are loaded as soon as those of
  // this one are used up.
  template <i32 Step, class AfterStep, class LoadNext>
  static void multiply(Accumulators& acc, Fragment (&a)[kFragments][kStrips],
                       StripWeights (&weights)[kStrips], u32 b, const AfterStep& after_step,
                       const LoadNext& load_next) {
    ptx::wgmma_fence();
#pragma unroll
    for (i32 s = 0; s < kStrips; ++s)
      ptx::wgmma_m64k16_bf16<kSteps>(acc[s], a[Step % kFragments][s], b + 2 * Step);
    ptx::wgmma_commit_group();
    if constexpr (kFragments == 2) {
      ptx::wgmma_wait_group<1>();
      after_step(Step);
    }
    dequantise_step<(Step + 1) % 4>(a[(Step + 1) % kFragments], weights);
    if constexpr (Step == 2) load_next();
    if constexpr (kFragments == 4) {
      ptx::wgmma_wait_group<1>();
      after_step(Step);
    }
    if constexpr (Step < 3) multiply<Step + 1>(acc, a, weights, b, after_step, load_next);
  }
};

}  // namespace chord::device
