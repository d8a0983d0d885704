// How a wgmma kernel goes through the windows of the routing: the first consumer warpgroup plans,
// since it has the registers, and all other threads wait for the table.
#pragma once

#include "kernels/moe_gemm/warm_up.cuh"
#include "kernels/ptx/control.cuh"
#include "kernels/routing/pieces.cuh"
#include "kernels/routing/plan.cuh"

namespace chord::device {

inline constexpr i32 kPlanningWarmer = 96;  // thread of the planning warpgroup

// What all threads of a CTA know of a window.
struct Window {
  SegmentTable& table;
  WaveTable* waves;  // null where none are dealt out
  CtaWork* work;     // of this CTA; null where it is found out piece by piece
};

// All threads of the CTA: the table is planned, or may be planned anew.
template <Schedule S>
inline void table_barrier() {
  ptx::bar_sync<0, abi::threads(S)>();
}

// One who only loads: run() for every window.
template <Schedule S, class Run>
inline void for_each_window(const Window& window, const Run& run) {
  bool more = true;
  while (more) {
    table_barrier<S>();
    more = window.table.has_more != 0;
    run();
    if (more) table_barrier<S>();
  }
}

// The consumers' side: the first warpgroup plans, then run().
template <Schedule S, Problem P, class Run>
inline void plan_each_window(const GemmParams& p, const Window& window, PlanScratch& scratch,
                             i32 thread, const Run& run) {
  constexpr WorkShape kShape = WorkShape::of(S, P);
  const SegmentTable& table = window.table;
  i64 begin = 0;
  bool more = true;
  while (more) {
    if (thread < kPlanThreads) {
      plan_window<S, P>(p, begin, window.table, window.waves, scratch, thread, [&] {
        if (begin > 0 || thread != kPlanningWarmer) return;
        warm_entries<S, P>(p);
        warm_activations<S, P>(p);
        warm_weights<S, P>(p);
      });
      if (thread < 32 && window.work != nullptr) {
        CtaWork work{};
        work.range = kNoRange;
        if (table.total_cost > 0) {
          const Cut cut = cut_of(table, kShape, static_cast<i32>(gridDim.x),
                                 begin == 0 && table.has_more == 0, window.waves);
          work =
              work_of_cta(WorkList(table, kShape, cut), cut, static_cast<i32>(blockIdx.x), thread);
        }
        if (thread == 0) *window.work = work;
      }
      plan_barrier();
    }
    table_barrier<S>();
    more = table.has_more != 0;
    begin = table.next;
    if (!more) ptx::griddepcontrol_launch_dependents();
    run();
    if (more) table_barrier<S>();
  }
}

}  // namespace chord::device
