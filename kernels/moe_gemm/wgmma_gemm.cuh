// The cast list of the wgmma kernel: two consumer warpgroups and a producer warpgroup, of which the
// last warp loads; where rows lie apart, two gather them and one publishes what has landed. The
// first consumer warpgroup plans the routing before it multiplies, since it has the registers.
//
// Registers move from the producer to the consumers: all threads start with 168, and go on with 72
// and 216, or with 40 and 232.
#pragma once

#include "kernels/moe_gemm/wgmma_consumer.cuh"
#include "kernels/moe_gemm/wgmma_producer.cuh"
#include "kernels/moe_gemm/windows.cuh"

namespace chord::device {

// Four strips of weights want more registers than wide sums do.
template <Schedule S>
inline constexpr bool kIsWide = abi::warp_strips(S) == 4;
template <Schedule S>
inline constexpr i32 kWgmmaConsumerRegisters = kIsWide<S> ? 232 : 216;
template <Schedule S>
inline constexpr i32 kWgmmaProducerRegisters = kIsWide<S> ? 40 : 72;
inline constexpr i32 kPublisher = kGatherThreads / 32;  // warp of the producer warpgroup

template <Schedule S, Problem P>
inline void wgmma_gemm(const GemmParams& p) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ PlanScratch scratch;
  __shared__ CtaWork work;
  constexpr i32 kConsumers = 32 * abi::kConsumerWarps;
  const i32 thread = static_cast<i32>(threadIdx.x);
  const i32 lane = thread % 32;
  const i32 warp = __shfl_sync(0xffffffffu, thread / 32, 0);  // uniform, and ptxas knows it
  const Ring<S> ring(shared);
  static_assert(sizeof(WaveTable) <= abi::wave_table_bytes(S));
  const Window window{*reinterpret_cast<SegmentTable*>(shared + SharedMap<S>::kSegments),
                      reinterpret_cast<WaveTable*>(shared + SharedMap<S>::kWaves), &work};
  if (thread == 0) {
    ring.initialise(kFillers<P>, kGatherThreads);
    ptx::prefetch_tensormap(&p.weights);
    ptx::prefetch_tensormap(&p.scales);
  }
  __syncthreads();

  if (warp >= abi::kConsumerWarps) {
    ptx::setmaxnreg_dec<kWgmmaProducerRegisters<S>>();
    ptx::griddepcontrol_wait();
    const i32 role = warp - abi::kConsumerWarps;
    if (role < kGatherThreads / 32) {
      WgmmaGatherer<S, P> gatherer(p, ring, thread - kConsumers);
      for_each_window<S>(window, [&] {
        if constexpr (kGathers<P>) gatherer.run();
      });
      ptx::cp_async_wait_all();
    } else if (role == kPublisher) {
      WgmmaPublisher<S> publisher(ring);
      for_each_window<S>(window, [&] {
        if (kGathers<P> && lane == 0) publisher.run();
        __syncwarp();
      });
    } else {
      WgmmaLoader<S, P> loader(p, ring, lane);
      for_each_window<S>(window, [&] { loader.run(window.table, *window.work); });
    }
  } else {
    ptx::setmaxnreg_inc<kWgmmaConsumerRegisters<S>>();
    ptx::griddepcontrol_wait();
    WgmmaConsumer<S, P> consumer(p, ring, warp, lane);
    plan_each_window<S, P>(p, window, scratch, thread, [&] { consumer.run(); });
  }
}

}  // namespace chord::device
