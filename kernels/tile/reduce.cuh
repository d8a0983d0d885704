// Split tiles: a head piece leaves its FP32 sums in the workspace and raises a flag; the owner of
// the tile's start adds them in range order, after its own. One slot per range, one flag per
// consumer warp, so that warps meet only their own twin. Flags are zero again after every launch;
// partials are scratch.
//
// Adding last costs the latency of a flag and of the sums behind it when nothing else is left to
// do, adding first costs it while the ring is full. So a warp that has nothing to do brings the
// first partial to shared memory as soon as it is there, while the tile is still multiplied (there
// is seldom a second one); the order of the sum stays.
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/copy.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/tile/pipeline.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;

template <Schedule S>
inline constexpr bool kFetchesPartial = abi::fetched_partial_bytes(S) > 0;

// With many contributors the CTAs have little else to do, and the way through one more warp and
// shared memory is the longer one.
constexpr bool is_fetched(i32 contributors) { return contributors == 1 || contributors == 2; }

// One warp: awaits all consumer warps of the range, clears its flags and copies its slot.
template <Schedule S>
inline void fetch_partial(float* partials, i32* flags, const Ring<S>& ring, i32 range, i32 lane) {
  if (lane < abi::kConsumerWarps) {
    i32* flag = flags + range * abi::kConsumerWarps + lane;
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::st_relaxed_gpu(flag, 0);
  }
  __syncwarp();
  if (lane == 0) {
    constexpr u32 kBytes = static_cast<u32>(abi::partial_bytes(S));
    ptx::fence_proxy_async();
    ptx::mbarrier_arrive_expect_tx(ring.fetched(), kBytes);
    ptx::cp_async_bulk(ring.fetched_partial(), partials + range * (abi::partial_bytes(S) / 4),
                       kBytes, ring.fetched());
  }
}

template <Schedule S, i32 Strips, i32 Steps>
class Partials {
  static constexpr i64 kSlotFloats = abi::partial_bytes(S) / 4;
  static constexpr i64 kWarpFloats = static_cast<i64>(Strips) * Steps * 4 * 32;
  static constexpr i32 kLoads = Strips * Steps;  // of one partial, 16 bytes each
  static constexpr i32 kInFlight = kLoads <= 8 ? 4 : kLoads <= 12 ? 2 : 1;  // partials; registers

 public:
  Partials(float* partials, i32* flags, i32 warp, i32 lane)
      : partials_(partials + warp * kWarpFloats + lane * 4), flags_(flags + warp), lane_(lane) {}

  void store(const float (&acc)[Strips][Steps][4], i32 range, i32 steps) const {
    float* slot = partials_ + range * kSlotFloats;
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

  // The partial that fetch_partial has brought to `fetched`; its flags are cleared.
  void add_fetched(float (&acc)[Strips][Steps][4], u32 fetched, i32 warp, i32 steps) const {
    const u32 slot = fetched + static_cast<u32>(warp * kWarpFloats + lane_ * 4) * 4;
#pragma unroll
    for (i32 l = 0; l < kLoads; ++l) {
      if (l % Steps >= steps) continue;
      const ptx::F32x4 more = ptx::ld_shared_v4_f32(slot + l * 512);
      float(&sum)[4] = acc[l / Steps][l % Steps];
      sum[0] += more.x;
      sum[1] += more.y;
      sum[2] += more.z;
      sum[3] += more.w;
    }
  }

  // The partials of `count` ranges from `first` on, a few registers at a time: for tiles whose sums
  // leave no room for more.
  void add_few(float (&acc)[Strips][Steps][4], i32 first, i32 count) const {
    constexpr i32 kAtOnce = 8;
    await_flags(first, count);
    for (i32 i = 0; i < count; ++i) {
      const float* slot = partials_ + (first + i) * kSlotFloats;
#pragma unroll
      for (i32 begin = 0; begin < kLoads; begin += kAtOnce) {
        ptx::F32x4 part[kAtOnce];
#pragma unroll
        for (i32 l = 0; l < kAtOnce; ++l)
          part[l] = ptx::ld_global_cg_v4_if(begin + l < kLoads, slot + (begin + l) * 128);
#pragma unroll
        for (i32 l = 0; l < kAtOnce; ++l) {
          if (begin + l >= kLoads) continue;
          float(&sum)[4] = acc[(begin + l) / Steps][(begin + l) % Steps];
          sum[0] += part[l].x;
          sum[1] += part[l].y;
          sum[2] += part[l].z;
          sum[3] += part[l].w;
        }
      }
    }
    clear_flags(first, count);
  }

  // The partials of `count` ranges from `first` on. Flags are awaited by one lane each; the loads
  // of several ranges are in flight at a time, as each costs the latency of the L2.
  void add(float (&acc)[Strips][Steps][4], i32 first, i32 count, i32 steps) const {
    await_flags(first, count);
    for (i32 i = 0; i < count; i += kInFlight) {
      ptx::F32x4 part[kInFlight][Strips][Steps];
#pragma unroll
      for (i32 j = 0; j < kInFlight; ++j) {
        const float* slot = partials_ + (first + i + j) * kSlotFloats;
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
    clear_flags(first, count);
  }

 private:
  void await_flags(i32 first, i32 count) const {
    for (i32 i = lane_; i < count; i += 32)
      while (ptx::ld_acquire_gpu(flag(first + i)) == 0) {
      }
    __syncwarp();
  }
  void clear_flags(i32 first, i32 count) const {
    __syncwarp();
    for (i32 i = lane_; i < count; i += 32) ptx::st_relaxed_gpu(flag(first + i), 0);
  }
  i32* flag(i32 range) const { return flags_ + range * abi::kConsumerWarps; }

  float* partials_;
  i32* flags_;
  i32 lane_;
};

}  // namespace chord::device
