// Approximate FP32 functions of the special function unit (PTX ISA: relative error about 2^-22).
#pragma once

namespace chord::device::ptx {

inline float ex2_approx(float a) {
  float d;
  asm("ex2.approx.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

inline float rcp_approx(float a) {
  float d;
  asm("rcp.approx.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

}  // namespace chord::device::ptx
