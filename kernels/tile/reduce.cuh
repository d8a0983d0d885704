// Split tiles: a head piece leaves its FP32 sums in the workspace and raises a flag; the owner of
// the tile's start adds them in range order. One slot per range, one flag per consumer warp, so
// that warps meet only their own twin. Flags are zero again after every launch; partials are
// scratch.
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/memory.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;

template <i32 Strips, i32 Steps>
class Partials {
  static constexpr i64 kWarpFloats = static_cast<i64>(Strips) * Steps * 4 * 32;
  static constexpr i32 kLoads = Strips * Steps;  // of one partial, 16 bytes each
  static constexpr i32 kInFlight = kLoads <= 8 ? 4 : kLoads <= 12 ? 2 : 1;  // partials; registers

 public:
  Partials(float* partials, i32* flags, i32 warp, i32 lane)
      : partials_(partials + warp * kWarpFloats + lane * 4), flags_(flags + warp), lane_(lane) {}

  void store(const float (&acc)[Strips][Steps][4], i32 range, i32 steps) const {
    float* slot = partials_ + range * (abi::kConsumerWarps * kWarpFloats);
#pragma unroll
    for (i32 s = 0; s < Strips; ++s)
#pragma unroll
      for (i32 n = 0; n < Steps; ++n)
        if (n < steps)
          ptx::st_global_cg_v4(slot + (s * Steps + n) * 128,
                               {acc[s][n][0], acc[s][n][1], acc[s][n][2], acc[s][n][3]});
    ptx::fence_acq_rel_gpu();
    __syncwarp();
    if (lane_ == 0) ptx::st_release_gpu(flag(range), 1);
  }

  // The partials of `count` ranges from `first` on. Flags are awaited by one lane each; the loads
  // of several ranges are in flight at a time, as each costs the latency of the L2.
  void add(float (&acc)[Strips][Steps][4], i32 first, i32 count, i32 steps) const {
    for (i32 i = lane_; i < count; i += 32)
      while (ptx::ld_acquire_gpu(flag(first + i)) == 0) {
      }
    __syncwarp();
    for (i32 i = 0; i < count; i += kInFlight) {
      ptx::F32x4 part[kInFlight][Strips][Steps];
#pragma unroll
      for (i32 j = 0; j < kInFlight; ++j) {
        const float* slot = partials_ + (first + i + j) * (abi::kConsumerWarps * kWarpFloats);
#pragma unroll
        for (i32 l = 0; l < kLoads; ++l)
          part[j][l / Steps][l % Steps] =
              ptx::ld_global_cg_v4_if(i + j < count && l % Steps < steps, slot + l * 128);
      }
#pragma unroll
      for (i32 j = 0; j < kInFlight; ++j)
#pragma unroll
        for (i32 l = 0; l < kLoads; ++l) {
          float(&sum)[4] = acc[l / Steps][l % Steps];
          const ptx::F32x4& more = part[j][l / Steps][l % Steps];
          sum[0] += more.x;
          sum[1] += more.y;
          sum[2] += more.z;
          sum[3] += more.w;
        }
    }
    __syncwarp();
    for (i32 i = lane_; i < count; i += 32) ptx::st_relaxed_gpu(flag(first + i), 0);
  }

 private:
  i32* flag(i32 range) const { return flags_ + range * abi::kConsumerWarps; }

  float* partials_;
  i32* flags_;
  i32 lane_;
};

}  // namespace chord::device
