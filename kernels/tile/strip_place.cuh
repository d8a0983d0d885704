// Where a lane finds the weights of its strips: from the start of a stage, or in shared memory. Its
// strips and slices lie at constant distances, which the loads take as immediates (4 % of the
// instructions of the mma loop, against an index per strip).
#pragma once

#include "kernels/ptx/memory.cuh"
#include "kernels/tile/pipeline.cuh"

namespace chord::device {

template <Schedule S>
struct StripPlace {
  u32 codes, scales;  // of the warp's first strip and the first slice

  // `warp` of those that share a stage.
  static StripPlace in_stage(i32 warp, i32 lane) {
    const i32 strip = warp * abi::warp_strips(S);  // warp_strips divides the four of an atom
    const i32 atom = (strip / 4) * S.slices_per_stage;
    return {static_cast<u32>(SharedMap<S>::kWeights + atom * abi::kAtomBytes +
                             (strip % 4) * abi::kStripBytes + lane * 16),
            static_cast<u32>(SharedMap<S>::kScales + atom * abi::kAtomScaleBytes +
                             (strip % 4) * abi::kStripScaleBytes + (lane >> 2) * 8)};
  }

  StripPlace operator+(u32 base) const { return {codes + base, scales + base}; }

  // 16 bytes of codes, and the scales of both groups: of rows g, then of rows g + 8.
  ptx::U32x4 load_codes(i32 slice, i32 strip) const {
    return ptx::ld_shared_v4(codes + slice * abi::kAtomBytes + strip * abi::kStripBytes);
  }
  ptx::U32x2 load_scales(i32 slice, i32 strip) const {
    return ptx::ld_shared_v2(scales + slice * abi::kAtomScaleBytes + strip * abi::kStripScaleBytes);
  }
};

}  // namespace chord::device
