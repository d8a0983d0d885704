// The cast list of the wgmma kernel: two consumer warpgroups and a producer warpgroup, of which the
// last warp loads; where rows lie apart, two gather them and one publishes what has landed. The
// first consumer warpgroup plans the routing before it multiplies, since it has the registers.
//
// Registers move from the producer to the consumers: all threads start with 168, and go on with 72
// and 216, or with 40 and 232.
#pragma once

#include "kernels/moe_gemm/warm_up.cuh"
#include "kernels/moe_gemm/wgmma_consumer.cuh"
#include "kernels/moe_gemm/wgmma_producer.cuh"
#include "kernels/ptx/control.cuh"
#include "kernels/routing/plan.cuh"

namespace chord::device {

// Four strips of weights want more registers than wide sums do.
template <Schedule S>
inline constexpr bool kIsWide = abi::warp_strips(S) == 4;
template <Schedule S>
inline constexpr i32 kWgmmaConsumerRegisters = kIsWide<S> ? 232 : 216;
template <Schedule S>
inline constexpr i32 kWgmmaProducerRegisters = kIsWide<S> ? 40 : 72;
inline constexpr i32 kPlanningWarmer = 96;  // thread of the planning warpgroup

// All threads of the CTA: the table is planned, or may be planned anew.
template <Schedule S>
inline void table_barrier() {
  ptx::bar_sync<0, abi::threads(S)>();
}

inline constexpr i32 kPublisher = kGatherThreads / 32;  // warp of the producer warpgroup

template <Schedule S, Problem P>
inline void wgmma_gemm(const GemmParams& p) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ PlanScratch scratch;
  constexpr WorkShape kShape = WorkShape::of(S, P);
  constexpr i32 kConsumers = 32 * abi::kConsumerWarps;
  const i32 thread = static_cast<i32>(threadIdx.x);
  const i32 lane = thread % 32;
  const i32 warp = __shfl_sync(0xffffffffu, thread / 32, 0);  // uniform, and ptxas knows it
  const Ring<S> ring(shared);
  // The producer's side of what the consumers' does below.
  const auto for_each_window = [](const SegmentTable& planned, const auto& load) {
    bool more = true;
    while (more) {
      table_barrier<S>();
      more = planned.has_more != 0;
      load();
      if (more) table_barrier<S>();
    }
  };
  auto& table = *reinterpret_cast<SegmentTable*>(shared + SharedMap<S>::kSegments);
  auto& waves = *reinterpret_cast<WaveTable*>(shared + SharedMap<S>::kWaves);
  static_assert(sizeof(WaveTable) <= abi::wave_table_bytes(S));
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
      for_each_window(table, [&] {
        if constexpr (kGathers<P>) gatherer.run();
      });
      ptx::cp_async_wait_all();
    } else if (role == kPublisher) {
      WgmmaPublisher<S> publisher(ring);
      for_each_window(table, [&] {
        if (kGathers<P> && lane == 0) publisher.run();
        __syncwarp();
      });
    } else {
      WgmmaLoader<S, P> loader(p, ring, lane);
      for_each_window(table, [&] { loader.run(table, waves.work); });
    }
  } else {
    ptx::setmaxnreg_inc<kWgmmaConsumerRegisters<S>>();
    ptx::griddepcontrol_wait();
    WgmmaConsumer<S, P> consumer(p, ring, warp, lane);
    i64 begin = 0;
    bool more = true;
    while (more) {
      if (warp < kPlanWarps) {
        plan_window<S, P>(p, begin, table, &waves, scratch, thread, [&] {
          if (begin > 0 || thread != kPlanningWarmer) return;
          warm_activations<S, P>(p);
          warm_weights<S, P>(p);
        });
        if (warp == 0) {
          CtaWork mine{};
          mine.range = kNoRange;
          if (table.total_cost > 0) {
            const Cut cut = cut_of(table, kShape, static_cast<i32>(gridDim.x),
                                   begin == 0 && table.has_more == 0, &waves);
            mine =
                work_of_cta(WorkList(table, kShape, cut), cut, static_cast<i32>(blockIdx.x), lane);
          }
          if (thread == 0) waves.work = mine;
        }
      }
      table_barrier<S>();
      more = table.has_more != 0;
      begin = table.next;
      if (!more) ptx::griddepcontrol_launch_dependents();
      consumer.run();
      if (more) table_barrier<S>();
    }
  }
}

}  // namespace chord::device
