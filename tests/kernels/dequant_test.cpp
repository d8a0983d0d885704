// Dequantisation proven on the CPU: every code, every position, every packable scale.
#include "kernels/tile/dequant.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace chord::device {
namespace {

float value_of(u32 bits16) { return std::bit_cast<float>(bits16 << 16); }

// RN((code - 8) * scale) in BF16, the reference of the contract, from exact double arithmetic.
float reference(int code, std::uint16_t scale) {
  const double exact = (code - 8) * static_cast<double>(value_of(scale));
  if (exact == 0) return 0;
  const int exponent = std::max(std::ilogb(exact), -126);
  return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(exact, 7 - exponent)), exponent - 7));
}

// The row (0: g, 1: g + 8) and the half of A register `reg` that a nibble feeds.
struct Position {
  int nibble, reg, half;
};

template <Dequantisation Form, i32 Group>
void expect_all_codes(std::uint16_t scale_low, std::uint16_t scale_high) {
  const u32 stored_low = abi::transform_scale(scale_low, abi::kScaleShiftLow);
  const u32 stored_high = abi::transform_scale(scale_high, abi::kScaleShiftHigh);
  // The other group's half holds another scale, so that a wrong half-select shows.
  const u32 other = abi::transform_scale(0x3f80, abi::kScaleShiftLow);
  const u32 other_high = abi::transform_scale(0x3f80, abi::kScaleShiftHigh);
  const auto pair = [](u32 mine, u32 others) {
    return Group == 0 ? mine | others << 16 : others | mine << 16;
  };
  const StripScales scales =
      prepare_scales<Form>(pair(stored_low, other), pair(stored_high, other_high));
  for (int code = 0; code < 16; ++code) {
    for (int nibble = 0; nibble < 8; ++nibble) {
      const u32 background = 0x9b4d2e71u;
      const u32 word = (background & ~(15u << (4 * nibble))) | static_cast<u32>(code)
                                                                   << (4 * nibble);
      u32 a[4];
      dequantise<Form, Group>(a, word, scales);
      const int reg = nibble % 4, half = nibble / 4;
      float got = value_of(half == 0 ? a[reg] & 0xffff : a[reg] >> 16) * output_factor(Form);
      if (Form == Dequantisation::accumulator)
        got *= group_scale<Group>(reg % 2 == 0 ? scales.low : scales.high);
      const std::uint16_t scale = reg % 2 == 0 ? scale_low : scale_high;
      const float want = Form == Dequantisation::accumulator
                             ? static_cast<float>((code - 8) * static_cast<double>(value_of(scale)))
                             : reference(code, scale);
      ASSERT_EQ(got, want) << "code " << code << " nibble " << nibble << " scale bits " << scale;
    }
  }
}

template <Dequantisation Form>
void expect_all_scales() {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const auto scale = static_cast<std::uint16_t>(bits);
    if (!abi::is_packable_scale(scale)) continue;
    const std::uint16_t another = abi::is_packable_scale(static_cast<std::uint16_t>(bits ^ 0x155))
                                      ? static_cast<std::uint16_t>(bits ^ 0x155)
                                      : 0x3c01;
    expect_all_codes<Form, 0>(scale, another);
    expect_all_codes<Form, 1>(another, scale);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Dequant, FusedIsExactForEveryCodePositionAndScale) {
  expect_all_scales<Dequantisation::fused>();
}

TEST(Dequant, OrdinaryIsExactForEveryCodePositionAndScale) {
  expect_all_scales<Dequantisation::ordinary>();
}

TEST(Dequant, AccumulatorFormKeepsTheCodeAndTheScaleApart) {
  expect_all_scales<Dequantisation::accumulator>();
}

TEST(Dequant, ScalesOutsideTheExactRangeAreNotPackable) {
  EXPECT_TRUE(abi::is_packable_scale(0x0000));
  EXPECT_TRUE(abi::is_packable_scale(0x8000));
  EXPECT_TRUE(abi::is_packable_scale((127 - 112) << 7));         // 2^-112
  EXPECT_FALSE(abi::is_packable_scale(((127 - 112) << 7) - 1));  // just below
  EXPECT_TRUE(abi::is_packable_scale(((127 + 9) << 7) - 1));     // just below 2^9
  EXPECT_FALSE(abi::is_packable_scale((127 + 9) << 7));          // 2^9
  EXPECT_FALSE(abi::is_packable_scale(0x0001));                  // subnormal
  EXPECT_FALSE(abi::is_packable_scale(0x7f80));                  // infinity
  EXPECT_FALSE(abi::is_packable_scale(0x7fc0));                  // NaN
}

}  // namespace
}  // namespace chord::device
