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
  static constexpr int kInFlight = Strips * Steps <= 8 ? 4 : 1;  // as far as registers last

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
#pragma unroll kInFlight
    for (i32 i = 0; i < count; ++i) {
      const float* slot = partials_ + (first + i) * (abi::kConsumerWarps * kWarpFloats);
#pragma unroll
      for (i32 s = 0; s < Strips; ++s)
#pragma unroll
        for (i32 n = 0; n < Steps; ++n)
          if (n < steps) {
            const ptx::F32x4 part = ptx::ld_global_cg_v4(slot + (s * Steps + n) * 128);
            acc[s][n][0] += part.x;
            acc[s][n][1] += part.y;
            acc[s][n][2] += part.z;
            acc[s][n][3] += part.w;
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
