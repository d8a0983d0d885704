// Packed BF16 arithmetic. Every one rounds to nearest even and keeps subnormals (PTX ISA, "Half
// Precision Floating Point Instructions": .bf16x2 without .ftz). A host compiler gets declarations
// only; tests define them in software, so that dequantisation is proven without a GPU.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device::ptx {

using abi::u32;

#ifdef __CUDACC__

inline u32 fma_rn_bf16x2(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

inline u32 mul_rn_bf16x2(u32 a, u32 b) {
  u32 d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

inline u32 sub_rn_bf16x2(u32 a, u32 b) {
  u32 d;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// {low, low} and {high, high}. Written with mov, ptxas folds them into half-select operands of the
// packed instruction that follows; written with prmt they stay instructions.
inline u32 mov_low_low(u32 a) {
  u32 d;
  asm("{\n .reg .b16 l, h;\n mov.b32 {l, h}, %1;\n mov.b32 %0, {l, l};\n}" : "=r"(d) : "r"(a));
  return d;
}

inline u32 mov_high_high(u32 a) {
  u32 d;
  asm("{\n .reg .b16 l, h;\n mov.b32 {l, h}, %1;\n mov.b32 %0, {h, h};\n}" : "=r"(d) : "r"(a));
  return d;
}

// (a & b) | c
inline u32 lop3_and_or(u32 a, u32 b, u32 c) {
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

inline u32 cvt_rn_bf16x2(float high, float low) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

inline float float_of_bits(u32 bits) { return __uint_as_float(bits); }

#else

u32 fma_rn_bf16x2(u32 a, u32 b, u32 c);
u32 mul_rn_bf16x2(u32 a, u32 b);
u32 sub_rn_bf16x2(u32 a, u32 b);
u32 mov_low_low(u32 a);
u32 mov_high_high(u32 a);
u32 lop3_and_or(u32 a, u32 b, u32 c);
u32 cvt_rn_bf16x2(float high, float low);
float float_of_bits(u32 bits);

#endif

}  // namespace chord::device::ptx
