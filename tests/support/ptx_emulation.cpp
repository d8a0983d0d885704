// The packed BF16 instructions in software, as PTX defines them: one rounding to nearest even,
// subnormals kept. It lets the host prove device text that calls them.
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/ptx/bf16x2.cuh"

namespace chord::device::ptx {
namespace {

double value_of(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Round a double to BF16, nearest even, through its exponent: exact also for subnormals.
std::uint16_t round_to_bf16(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7fff;
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < -126) exponent = -126;
  const double scaled = std::ldexp(magnitude, 7 - exponent);  // 128..255, below for subnormals
  double rounded = std::nearbyint(scaled);
  if (rounded == 256) {
    rounded = 128;
    ++exponent;
  }
  if (exponent > 127) return sign | 0x7f80;
  const auto mantissa = static_cast<std::uint16_t>(rounded);
  if (mantissa < 128) return sign | mantissa;
  return static_cast<std::uint16_t>(sign | ((exponent + 127) << 7) | (mantissa & 0x7f));
}

template <class Operation>
u32 per_half(u32 a, u32 b, u32 c, Operation operation) {
  u32 result = 0;
  for (int half = 0; half < 2; ++half) {
    const auto part = [half](u32 x) { return static_cast<std::uint16_t>(x >> (16 * half)); };
    const double value = operation(value_of(part(a)), value_of(part(b)), value_of(part(c)));
    result |= static_cast<u32>(round_to_bf16(value)) << (16 * half);
  }
  return result;
}

}  // namespace

// A product of two BF16 numbers is exact in double; std::fma adds with one rounding to 53 bits, far
// finer than the 8 that are kept.
u32 fma_rn_bf16x2(u32 a, u32 b, u32 c) {
  return per_half(a, b, c, [](double x, double y, double z) { return std::fma(x, y, z); });
}
u32 mul_rn_bf16x2(u32 a, u32 b) {
  return per_half(a, b, 0, [](double x, double y, double) { return x * y; });
}
u32 sub_rn_bf16x2(u32 a, u32 b) {
  return per_half(a, b, 0, [](double x, double y, double) { return x - y; });
}
u32 mov_low_low(u32 a) { return (a & 0xffff) | (a << 16); }
u32 mov_high_high(u32 a) { return (a >> 16) | (a & 0xffff0000u); }
u32 lop3_and_or(u32 a, u32 b, u32 c) { return (a & b) | c; }
u32 cvt_rn_bf16x2(float high, float low) {
  return static_cast<u32>(round_to_bf16(high)) << 16 | round_to_bf16(low);
}
float float_of_bits(u32 bits) { return std::bit_cast<float>(bits); }

}  // namespace chord::device::ptx
