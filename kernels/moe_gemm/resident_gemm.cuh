// The cast list of the kernel whose rows stay: two consumer warpgroups, which take panels in turn,
// and a producer warpgroup, of which three warps bring rows and a lane of the last brings weights.
//
// Registers move from the producer to the consumers: 168 at launch, 56 and 224 after.
#pragma once

#include "kernels/moe_gemm/resident_consumer.cuh"
#include "kernels/moe_gemm/resident_producer.cuh"
#include "kernels/moe_gemm/windows.cuh"

namespace chord::device {

inline constexpr i32 kResidentProducerRegisters = 56;
inline constexpr i32 kResidentConsumerRegisters = 224;

template <Schedule S, Problem P>
inline void resident_gemm(const GemmParams& p) {
  static_assert(P.k == S.slices_per_stage * abi::kAtomDepth, "a stage holds all of K");
  extern __shared__ __align__(1024) char shared[];
  __shared__ PlanScratch scratch;
  __shared__ PanelRun runs[abi::kMaxRowBuffers + 1];
  const i32 thread = static_cast<i32>(threadIdx.x);
  const i32 lane = thread % 32;
  const i32 warp = __shfl_sync(0xffffffffu, thread / 32, 0);  // uniform, and ptxas knows it
  const Ring<S> ring(shared);
  const Window window{*reinterpret_cast<SegmentTable*>(shared + SharedMap<S>::kSegments), nullptr,
                      nullptr};
  if (thread == 0) {
    ring.initialise(1, 32 * kRowWarps);
    ptx::prefetch_tensormap(&p.weights);
    ptx::prefetch_tensormap(&p.scales);
  }
  __syncthreads();

  if (warp >= abi::kConsumerWarps) {
    ptx::setmaxnreg_dec<kResidentProducerRegisters>();
    ptx::griddepcontrol_wait();
    const i32 role = warp - abi::kConsumerWarps;
    if (role < kRowWarps) {
      RowLoader<S, P> loader(p, ring, runs, role, lane);
      bool is_first = true;
      for_each_window<S>(window, [&] {
        loader.run(window.table, is_first);
        is_first = false;
      });
    } else {
      PanelLoader<S, P> loader(p, ring, runs);
      for_each_window<S>(window, [&] {
        if (lane == 0) loader.run();
        __syncwarp();
      });
    }
  } else {
    ptx::setmaxnreg_inc<kResidentConsumerRegisters>();
    ptx::griddepcontrol_wait();
    ResidentConsumer<S, P> consumer(p, ring, warp, lane);
    plan_each_window<S, P>(p, window, scratch, thread, [&] { consumer.run(); });
    consumer.finish();
  }
}

}  // namespace chord::device
