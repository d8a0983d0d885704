// The entry of every GEMM kernel, and the cast list of the mma kernel: eight consumer warps and a
// producer warpgroup, of which all four warps plan, the first loads, the second fetches a partial
// and the last warms the L2 up. Persistent: one CTA per SM walks its range of the work list.
//
// Registers move from the producer to the consumers: 168 at launch, 88 and 208 after (40 and 232
// spill the planner, 88 and 208 spill nothing). Flags and partials belong to one launch, so a
// workspace may be used by one launch at a time.
#pragma once

#include "kernels/moe_gemm/consumer.cuh"
#include "kernels/moe_gemm/producer.cuh"
#include "kernels/moe_gemm/resident_gemm.cuh"
#include "kernels/moe_gemm/warm_up.cuh"
#include "kernels/moe_gemm/wgmma_gemm.cuh"
#include "kernels/routing/plan.cuh"

namespace chord::device {

inline constexpr i32 kProducerRegisters = 88;
inline constexpr i32 kConsumerRegisters = 208;
inline constexpr i32 kWarmingThread = 96;  // of the producer warpgroup, in a warp that only plans

// What the warps of the producer warpgroup share besides the ring.
struct ProducerScratch {
  PlanScratch plan;
  i32 awaited;  // the range whose partial is to be fetched, or kNoRange
};

template <Schedule S, Problem P>
inline void produce(const GemmParams& p, const Ring<S>& ring, SegmentTable& table,
                    ProducerScratch& scratch, i32 thread) {
  Producer<S, P> producer(p, ring, scratch.awaited, thread & 31);
  ptx::griddepcontrol_wait();
  const i32 ctas = static_cast<i32>(gridDim.x);
  i64 begin = 0;
  bool more = true;
  while (more) {
    plan_window<S, P>(p, begin, table, nullptr, scratch.plan, thread, [&] {
      if (begin > 0 || thread != kWarmingThread) return;
      warm_activations<S, P>(p);
      warm_weights<S, P>(p);
    });
    more = table.has_more != 0;
    if (begin == 0 && !more) ptx::griddepcontrol_launch_dependents();
    if (thread < 32 && table.total_cost > 0) {
      producer.run(table, cut_of(table, WorkShape::of(S, P), ctas, begin == 0 && !more));
    }
    begin = table.next;
    if (more) plan_barrier();  // the loading warp has left the table
  }
  if (thread < 32) {
    producer.finish();
  } else if (kFetchesPartial<S> && thread < 64) {
    fetch_answer();
    const i32 range = scratch.awaited;
    if (range != kNoRange) fetch_partial(p.partials, p.flags, ring, range, thread & 31);
  }
}

template <Schedule S, Problem P, class Mainloop>
inline void mma_gemm(const GemmParams& p) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ ProducerScratch scratch;
  const i32 warp = static_cast<i32>(threadIdx.x) / 32;
  const i32 lane = static_cast<i32>(threadIdx.x) % 32;
  const Ring<S> ring(shared);
  if (threadIdx.x == 0) {
    ring.initialise(32 + 1);
    ptx::prefetch_tensormap(&p.weights);
    ptx::prefetch_tensormap(&p.scales);
  }
  __syncthreads();

  if (warp >= abi::kConsumerWarps) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    auto& table = *reinterpret_cast<SegmentTable*>(shared + SharedMap<S>::kSegments);
    produce<S, P>(p, ring, table, scratch,
                  static_cast<i32>(threadIdx.x) - 32 * abi::kConsumerWarps);
  } else {
    ptx::setmaxnreg_inc<kConsumerRegisters>();
    Consumer<S, P, Mainloop>(p, ring, warp, lane).run();
  }
}

// A benchmark may put another loop in the place of the mma one: the same loads, less work.
template <Schedule S, Problem P, class Mainloop = MmaMainloop<S>>
inline void moe_gemm(const GemmParams& p) {
  static_assert(abi::is_well_formed(S), "the schedule does not fit this kernel");
  static_assert(abi::is_legal_shape(P.n, P.k), "N and K must be multiples of 64");
  if constexpr (S.mainloop == abi::Mainloop::resident)
    resident_gemm<S, P>(p);
  else if constexpr (S.mainloop == abi::Mainloop::wgmma)
    wgmma_gemm<S, P>(p);
  else
    mma_gemm<S, P, Mainloop>(p);
}

}  // namespace chord::device
