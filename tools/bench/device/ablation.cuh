// Main loops with work taken away, in the place of kernels/mainloop/mma.cuh: what is left tells
// which part of the kernel takes the time. Loads, routing, split tiles and stores are those of the
// kernel; what a loop adds up is wrong by design. Timed, never compared.
//
// Nothing that is left may be optimised away: every register that a loop makes flows into its sums.
// One fma takes two registers along; no instruction takes more.
#pragma once

#include "kernels/mainloop/mma.cuh"

namespace chord::bench {

using abi::i32;
using abi::Schedule;
using abi::u32;
using device::Dequantisation;

// The loop over stages; Slice says what happens to a k64 slice. Sums are those of the mma loop.
template <Schedule S, class Slice>
struct AblatedMainloop : device::MmaMainloop<S> {
  using Accumulators = typename device::MmaMainloop<S>::Accumulators;

  template <i32 Steps>
  static void run(Accumulators& acc, const device::Ring<S>& ring, device::RingPosition<S>& at,
                  i32 stages, i32 warp, i32 lane) {
    for (i32 stage = 0; stage < stages; ++stage) {
      ring.wait_full(at);
      const u32 base = ring.stage(at.slot);
#pragma unroll
      for (i32 q = 0; q < S.slices_per_stage; ++q)
        Slice::template run<Steps>(acc, base, q, warp, lane);
      ring.release(at, lane);
      at.advance();
    }
  }
};

// What the slices below have in common: where their operands lie, and how a register is kept.
template <Schedule S>
struct SliceOperands {
  static constexpr i32 kStrips = device::MmaMainloop<S>::kStrips;
  using Accumulators = typename device::MmaMainloop<S>::Accumulators;
  using Map = device::SharedMap<S>;

  static device::ptx::U32x4 codes(u32 base, i32 slice, i32 strip, i32 lane) {
    return device::ptx::ld_shared_v4(base + Map::kWeights + atom(slice, strip) * abi::kAtomBytes +
                                     (strip % 4) * abi::kStripBytes + lane * 16);
  }

  static device::ptx::U32x2 scales(u32 base, i32 slice, i32 strip, i32 lane) {
    return device::ptx::ld_shared_v2(base + Map::kScales +
                                     atom(slice, strip) * abi::kAtomScaleBytes +
                                     (strip % 4) * abi::kStripScaleBytes + (lane >> 2) * 8);
  }

  static void load_activations(u32 (&b)[4], u32 base, i32 slice, i32 group, i32 step, i32 lane) {
    const u32 first = base + (slice * S.tile_m + step * 8) * device::kActivationRowBytes;
    device::ptx::ldmatrix_x4(b, first + device::swizzled_offset(lane & 7, group * 4 + (lane >> 3)));
  }

  static void keep(float& sum, u32 one, u32 other) {
    sum = __fmaf_rn(__uint_as_float(one), __uint_as_float(other), sum);
  }

 private:
  static constexpr i32 atom(i32 slice, i32 strip) {
    return (strip / 4) * S.slices_per_stage + slice;
  }
};

// A stage is awaited and handed back; nothing of it is read.
struct UntouchedSlice {
  template <i32 Steps, class Accumulators>
  static void run(Accumulators&, u32, i32, i32, i32) {}
};

// All reads of shared memory and all dequantisation, without mma.
template <Schedule S>
struct DequantisedSlice : SliceOperands<S> {
  using Operands = SliceOperands<S>;
  using Accumulators = typename Operands::Accumulators;
  static constexpr Dequantisation kForm = S.dequantisation;

  template <i32 Steps>
  static void run(Accumulators& acc, u32 base, i32 slice, i32 warp, i32 lane) {
    device::ptx::U32x4 codes[Operands::kStrips];
    device::StripScales scales[Operands::kStrips];
#pragma unroll
    for (i32 s = 0; s < Operands::kStrips; ++s) {
      const i32 strip = warp * Operands::kStrips + s;
      codes[s] = Operands::codes(base, slice, strip, lane);
      const device::ptx::U32x2 stored = Operands::scales(base, slice, strip, lane);
      scales[s] = device::prepare_scales<kForm>(stored.x, stored.y);
    }
    run_group<Steps, 0>(acc, codes, scales, base, slice, lane);
    run_group<Steps, 1>(acc, codes, scales, base, slice, lane);
  }

 private:
  template <i32 Steps, i32 Group>
  static void run_group(Accumulators& acc, const device::ptx::U32x4 (&codes)[Operands::kStrips],
                        const device::StripScales (&scales)[Operands::kStrips], u32 base, i32 slice,
                        i32 lane) {
    u32 b[Steps][4];
#pragma unroll
    for (i32 n = 0; n < Steps; ++n) Operands::load_activations(b[n], base, slice, Group, n, lane);
#pragma unroll
    for (i32 s = 0; s < Operands::kStrips; ++s) {
      u32 a[2][4];
      device::dequantise<kForm, Group>(a[0], Group == 0 ? codes[s].x : codes[s].z, scales[s]);
      device::dequantise<kForm, Group>(a[1], Group == 0 ? codes[s].y : codes[s].w, scales[s]);
      keep_weights<Steps, Group>(acc[s], a, scales[s]);
    }
#pragma unroll
    for (i32 n = 0; n < Steps; ++n) {
      Operands::keep(acc[0][n][2], b[n][0], b[n][1]);
      Operands::keep(acc[0][n][3], b[n][2], b[n][3]);
    }
  }

  // Scales on accumulators are part of the dequantisation: four fma per strip and step.
  template <i32 Steps, i32 Group>
  static void keep_weights(float (&acc)[S.tile_m / 8][4], const u32 (&a)[2][4],
                           const device::StripScales& scales) {
    if constexpr (kForm == Dequantisation::accumulator) {
#pragma unroll
      for (i32 n = 0; n < Steps; ++n)
#pragma unroll
        for (i32 i = 0; i < 4; ++i)
          acc[n][i] += __uint_as_float(a[n % 2][i]) *
                       device::group_scale<Group>(i < 2 ? scales.low : scales.high);
    }
#pragma unroll
    for (i32 i = 0; i < 4; ++i) Operands::keep(acc[0][i], a[0][i], a[1][i]);
  }
};

// All reads of shared memory and all mma, with the codes as they lie for weights.
template <Schedule S>
struct RawSlice : SliceOperands<S> {
  using Operands = SliceOperands<S>;
  using Accumulators = typename Operands::Accumulators;

  template <i32 Steps>
  static void run(Accumulators& acc, u32 base, i32 slice, i32 warp, i32 lane) {
    u32 a[Operands::kStrips][4];
#pragma unroll
    for (i32 s = 0; s < Operands::kStrips; ++s) {
      const i32 strip = warp * Operands::kStrips + s;
      const device::ptx::U32x4 codes = Operands::codes(base, slice, strip, lane);
      const device::ptx::U32x2 scales = Operands::scales(base, slice, strip, lane);
      a[s][0] = codes.x;
      a[s][1] = codes.y;
      a[s][2] = codes.z;
      a[s][3] = codes.w;
      Operands::keep(acc[s][0][0], scales.x, scales.y);
    }
#pragma unroll
    for (i32 group = 0; group < 2; ++group)
#pragma unroll
      for (i32 n = 0; n < Steps; ++n) {
        u32 b[4];
        Operands::load_activations(b, base, slice, group, n, lane);
#pragma unroll
        for (i32 s = 0; s < Operands::kStrips; ++s) {
          device::ptx::mma_m16n8k16_bf16(acc[s][n], a[s], b[0], b[1]);
          device::ptx::mma_m16n8k16_bf16(acc[s][n], a[s], b[2], b[3]);
        }
      }
  }
};

template <Schedule S>
using LoadsOnly = AblatedMainloop<S, UntouchedSlice>;
template <Schedule S>
using DequantisationOnly = AblatedMainloop<S, DequantisedSlice<S>>;
template <Schedule S>
using MmaOnly = AblatedMainloop<S, RawSlice<S>>;

}  // namespace chord::bench
