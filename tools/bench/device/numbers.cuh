// A counter-based random number and BF16, written out: the reference must not share the arithmetic
// of the kernels that it judges.
#pragma once

#include "tools/bench/device/params.h"

namespace chord::bench {

inline u64 random_bits(u64 seed, u64 index) {
  u64 x = (index + 1) * 0x9E3779B97F4A7C15ull ^ seed * 0xD1B54A32D192ED03ull;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
  return x ^ x >> 32;
}

// (0, 1)
inline float unit_of(u32 bits) { return (static_cast<float>(bits >> 8) + 0.5f) * 0x1p-24f; }

inline float value_of(u32 bf16) { return __uint_as_float(bf16 << 16); }

// Round to nearest, ties to even.
inline u32 bf16_of(float value) {
  const u32 bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline bool is_finite(float value) { return (__float_as_uint(value) & 0x7f800000) != 0x7f800000; }

// Distance between neighbouring BF16 numbers at a finite value.
inline float bf16_ulp(float value) {
  const i32 exponent = static_cast<i32>(__float_as_uint(value) >> 23 & 0xff);
  return ldexpf(1.0f, (exponent > 1 ? exponent : 1) - 127 - 7);
}

inline i64 global_thread() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace chord::bench
