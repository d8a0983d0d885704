// SwiGLU in FP32, the same text for the epilogue of gate/up and for the kernel of its own.
#pragma once

#include "kernels/ptx/math.cuh"

namespace chord::device {

// x / (1 + exp(-x)). Where exp(-x) is infinite, -0; the true value is below 1e-36.
inline float silu(float x) {
  constexpr float kLog2E = 1.4426950408889634f;
  return x * ptx::rcp_approx(1.0f + ptx::ex2_approx(-x * kLog2E));
}

}  // namespace chord::device
