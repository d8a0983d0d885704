// From packed nibbles to the BF16 A fragment of mma, exactly.
//
// A BF16 pattern p in 0..255 is a subnormal or small normal of value p * 2^-133: linear. So a
// nibble at bits 0-3 of a half word is code * 2^-133 and one at bits 4-7 is code * 2^-129, with no
// conversion at all. Scales are stored as S0 = s * 2^119 for rows g and S1 = s * 2^115 for rows g +
// 8 (exact for 2^-112 <= |s| < 2^9), and with C0 = S0 * -2^-130, C1 = S1 * -2^-126, which are both
// -8 * s * 2^-14,
//   fma(w & 0x000F000F, S0, C0) = RN((code - 8) * s) * 2^-14
// in one rounding: the rows g from bits 0-3, the rows g + 8 from bits 4-7 with S1, C1. Outputs are
// multiplied by 2^14 once. 9 instructions per 8 weights; the usual carrier-subtract-multiply
// takes 15.
//
// The other two forms put the code on the carrier 0x4300 (128 + code), subtract 136, and either
// multiply by the scale in BF16 (ordinary: bit for bit the same weights) or leave (code - 8) and
// scale FP32 accumulators (accumulator). Both first undo the storage factor, exactly.
//
// Plain functions of their arguments: g++ compiles them too, and a test proves all 16 codes, every
// position and every packable scale.
#pragma once

#include "chord/abi/layout.h"
#include "chord/abi/schedule.h"
#include "kernels/ptx/bf16x2.cuh"

namespace chord::device {

using abi::Dequantisation;
using abi::i32;
using abi::u32;

inline constexpr u32 kMinusTwoPow130 = 0x80088008u;  // the subnormal -2^-130, twice
inline constexpr u32 kMinusTwoPow126 = 0x80808080u;
inline constexpr u32 kTwoPowMinus119 = 0x04000400u;
inline constexpr u32 kTwoPowMinus115 = 0x06000600u;
inline constexpr u32 kTwoPow14 = 0x46804680u;
inline constexpr u32 kCarrier = 0x43004300u;       // 128, twice
inline constexpr u32 kCarrierPlus8 = 0x43084308u;  // 136, twice

// What the epilogue multiplies by.
constexpr float output_factor(Dequantisation form) {
  return form == Dequantisation::fused ? 16384.0f : 1.0f;
}

// Two sums as the BF16 pair of an output row. Scaling by a power of two after the rounding gives
// the same bits, unless the sum is a subnormal of BF16 before it.
template <Dequantisation Form>
inline u32 output_pair(float low, float high) {
  const u32 pair = ptx::cvt_rn_bf16x2(high, low);
  return Form == Dequantisation::fused ? ptx::mul_rn_bf16x2(pair, kTwoPow14) : pair;
}

// The scales of one lane for one strip of one k64 slice, ready for use: for rows g and g + 8,
// groups 0 (low half) and 1 (high half).
struct StripScales {
  u32 low;   // rows g
  u32 high;  // rows g + 8
  u32 low_offset;
  u32 high_offset;
};

template <Dequantisation Form>
inline StripScales prepare_scales(u32 stored_low, u32 stored_high) {
  if constexpr (Form == Dequantisation::fused) {
    return {stored_low, stored_high, ptx::mul_rn_bf16x2(stored_low, kMinusTwoPow130),
            ptx::mul_rn_bf16x2(stored_high, kMinusTwoPow126)};
  } else {
    return {ptx::mul_rn_bf16x2(stored_low, kTwoPowMinus119),
            ptx::mul_rn_bf16x2(stored_high, kTwoPowMinus115), 0, 0};
  }
}

template <i32 Group>
inline u32 duplicate_group(u32 pair) {
  if constexpr (Group == 0)
    return ptx::mov_low_low(pair);
  else
    return ptx::mov_high_high(pair);
}

// One word (eight codes) of scale group Group -> the A fragment of one k16 step.
template <Dequantisation Form, i32 Group>
inline void dequantise(u32 (&a)[4], u32 word, const StripScales& scales) {
  if constexpr (Form == Dequantisation::fused) {
    const u32 s0 = duplicate_group<Group>(scales.low);
    const u32 s1 = duplicate_group<Group>(scales.high);
    const u32 c0 = duplicate_group<Group>(scales.low_offset);
    const u32 c1 = duplicate_group<Group>(scales.high_offset);
    const u32 upper = word >> 8;
    a[0] = ptx::fma_rn_bf16x2(word & 0x000F000Fu, s0, c0);
    a[1] = ptx::fma_rn_bf16x2(word & 0x00F000F0u, s1, c1);
    a[2] = ptx::fma_rn_bf16x2(upper & 0x000F000Fu, s0, c0);
    a[3] = ptx::fma_rn_bf16x2(upper & 0x00F000F0u, s1, c1);
  } else {
    a[0] = ptx::sub_rn_bf16x2(ptx::lop3_and_or(word, 0x000F000Fu, kCarrier), kCarrierPlus8);
    a[1] = ptx::sub_rn_bf16x2(ptx::lop3_and_or(word >> 4, 0x000F000Fu, kCarrier), kCarrierPlus8);
    a[2] = ptx::sub_rn_bf16x2(ptx::lop3_and_or(word >> 8, 0x000F000Fu, kCarrier), kCarrierPlus8);
    a[3] = ptx::sub_rn_bf16x2(ptx::lop3_and_or(word >> 12, 0x000F000Fu, kCarrier), kCarrierPlus8);
    if constexpr (Form == Dequantisation::ordinary) {
      const u32 s0 = duplicate_group<Group>(scales.low);
      const u32 s1 = duplicate_group<Group>(scales.high);
      a[0] = ptx::mul_rn_bf16x2(a[0], s0);
      a[1] = ptx::mul_rn_bf16x2(a[1], s1);
      a[2] = ptx::mul_rn_bf16x2(a[2], s0);
      a[3] = ptx::mul_rn_bf16x2(a[3], s1);
    }
  }
}

// The FP32 scale of a group, for accumulators.
template <i32 Group>
inline float group_scale(u32 pair) {
  return ptx::float_of_bits(Group == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

}  // namespace chord::device
