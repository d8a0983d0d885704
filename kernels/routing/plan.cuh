// Builds the segment table of one window of the routing, in shared memory, by the producer
// warpgroup (128 threads). Kimi's layers have at most 385 segments, so one window is the rule; a
// routing with more runs than the table holds is done window after window, each in whole tiles.
//
// What it costs is latency of dependent global loads: one for counts; two or three for blocks (the
// padded count, the experts with small blocks beside them, the last large block of every run).
#pragma once

#include "kernels/ptx/control.cuh"
#include "kernels/routing/rows.cuh"
#include "kernels/routing/work_list.cuh"

namespace chord::device {

inline constexpr i32 kPlanThreads = 32 * abi::kProducerWarps;

// Scratch of the scans, one word per warp; lives in the kernel's shared memory.
struct PlanScratch {
  i64 warp_sum[abi::kProducerWarps];
  i32 warp_max[abi::kProducerWarps];
  i32 warp_min[abi::kProducerWarps];
};

inline void plan_barrier() { ptx::bar_sync<1, kPlanThreads>(); }

// Exclusive scan over the 128 threads; `total` receives the sum.
template <class Value>
inline Value exclusive_scan(Value mine, Value& total, PlanScratch& scratch, i32 thread) {
  const i32 lane = thread & 31, warp = thread >> 5;
  Value inclusive = mine;
#pragma unroll
  for (i32 distance = 1; distance < 32; distance *= 2) {
    const Value below = __shfl_up_sync(0xffffffffu, inclusive, distance);
    if (lane >= distance) inclusive += below;
  }
  if (lane == 31) scratch.warp_sum[warp] = inclusive;
  plan_barrier();
  Value before = 0;
  total = 0;
#pragma unroll
  for (i32 w = 0; w < abi::kProducerWarps; ++w) {
    if (w < warp) before += static_cast<Value>(scratch.warp_sum[w]);
    total += static_cast<Value>(scratch.warp_sum[w]);
  }
  plan_barrier();
  return before + inclusive - mine;
}

// One segment per expert that has rows; experts [begin, ...) until the table is full.
template <RoutingKind Kind>
inline void collect_experts(const GemmParams& p, i64 begin, SegmentTable& table,
                            PlanScratch& scratch, i32 thread) {
  const i32 end = static_cast<i32>(abi::min_of(p.experts, begin + abi::kMaxSegments));
  i32 count = 0;
  for (i32 chunk = static_cast<i32>(begin); chunk < end; chunk += kPlanThreads) {
    const i32 expert = chunk + thread;
    const ExpertRows rows = expert < end ? rows_of_expert<Kind>(p, expert) : ExpertRows{};
    i32 found;
    const i32 index = count + exclusive_scan<i32>(rows.rows > 0 ? 1 : 0, found, scratch, thread);
    if (rows.rows > 0) {
      table.first[index] = rows.first;
      table.expert[index] = expert;
      table.rows[index] = rows.rows;
    }
    count += found;
  }
  if (thread == 0) {
    table.count = count;
    table.next = end;
  }
}

// Rows from the start of a block to its last owned entry.
template <RoutingKind Kind>
inline i32 rows_owned_in_block(const GemmParams& p, i64 position, i32 expert, i32 block_rows,
                               i64 limit) {
  const i32* entry = entries<Kind>(p) + position;
  i32 owned = 0;
  const i32 rows = static_cast<i32>(abi::min_of(block_rows, limit - position));
  if (rows == block_rows) {
#pragma unroll 4
    for (i32 row = 0; row < block_rows; row += 4) {
      const int4 four = *reinterpret_cast<const int4*>(entry + row);
      if (is_owned<Kind>(p, four.x, expert)) owned = row + 1;
      if (is_owned<Kind>(p, four.y, expert)) owned = row + 2;
      if (is_owned<Kind>(p, four.z, expert)) owned = row + 3;
      if (is_owned<Kind>(p, four.w, expert)) owned = row + 4;
    }
  } else {
    for (i32 row = 0; row < rows; ++row)
      if (is_owned<Kind>(p, entry[row], expert)) owned = row + 1;
  }
  return owned;
}

// One segment per run of neighbouring blocks of one expert; blocks whose expert is outside [0, E)
// are nobody's. Blocks [begin, ...) until the table is full.
template <RoutingKind Kind, i32 BlockM>
inline void collect_runs(const GemmParams& p, i64 begin, SegmentTable& table, PlanScratch& scratch,
                         i32 thread) {
  constexpr i32 block_rows = rows_of_block<Kind>(BlockM);
  // Small blocks are read beside their experts, which saves a dependent load; of large ones only
  // the last of each run is read. (An id of indexed routing is owned whoever the expert is.)
  constexpr bool kEarly = Kind == RoutingKind::indexed && block_rows <= 32;
  const i64 limit = positions<Kind>(p);
  const i64 blocks =
      Kind == RoutingKind::indexed ? limit / block_rows : abi::ceil_div(limit, block_rows);
  i32 count = 0;
  if (thread == 0) table.next = static_cast<i32>(blocks);
  plan_barrier();
  for (i64 chunk = begin; chunk < blocks && count <= abi::kMaxSegments; chunk += kPlanThreads) {
    const i64 block = chunk + thread;
    const bool inside = block < blocks;
    const i32 expert = inside ? expert_of_block<Kind>(p, block) : kNoRow;
    const i32 before = inside && block > begin ? expert_of_block<Kind>(p, block - 1) : kNoRow;
    const i32 after = inside && block + 1 < blocks ? expert_of_block<Kind>(p, block + 1) : kNoRow;
    const i32 owned = kEarly && inside
                          ? rows_owned_in_block<Kind>(p, block * block_rows, 0, block_rows, limit)
                          : 0;
    const bool valid = inside && is_expert(p, expert);
    const bool starts = valid && before != expert;
    const bool ends = valid && after != expert;
    i32 found;
    const i32 index = count + exclusive_scan<i32>(starts ? 1 : 0, found, scratch, thread);
    if (starts && index < abi::kMaxSegments) {
      table.first[index] = block * block_rows;
      table.expert[index] = expert;
    }
    if (starts && index == abi::kMaxSegments) table.next = static_cast<i32>(block);
    const i32 run = index + (starts ? 1 : 0) - 1;
    if (ends && run < abi::kMaxSegments) {
      table.cost_before[run] = block;  // its last block, for now
      table.rows[run] = owned;         // of the last block, for now
    }
    count += found;
  }
  if (count > abi::kMaxSegments) count = abi::kMaxSegments;
  plan_barrier();
  for (i32 run = thread; run < count; run += kPlanThreads) {
    const i64 last = table.cost_before[run] * block_rows;
    const i32 owned =
        kEarly ? table.rows[run]
               : rows_owned_in_block<Kind>(p, last, table.expert[run], block_rows, limit);
    table.rows[run] = static_cast<i32>(last - table.first[run]) + owned;
  }
  if (thread == 0) table.count = count;
}

// Prefix costs, and the extremes that choose between whole tiles and an even split.
inline void accumulate_costs(const WorkShape& shape, SegmentTable& table, PlanScratch& scratch,
                             i32 thread) {
  i64 running = 0;
  i32 most = 0, least = 0x7fffffff;
  for (i32 chunk = 0; chunk < table.count; chunk += kPlanThreads) {
    const i32 segment = chunk + thread;
    const i32 rows = segment < table.count ? table.rows[segment] : 0;
    i64 sum;
    const i64 before = exclusive_scan<i64>(shape.segment_cost(rows), sum, scratch, thread);
    if (segment < table.count) table.cost_before[segment] = running + before;
    running += sum;
    most = rows > most ? rows : most;
    least = rows > 0 && rows < least ? rows : least;
  }
  most = __reduce_max_sync(0xffffffffu, most);
  least = __reduce_min_sync(0xffffffffu, least);
  if ((thread & 31) == 0) {
    scratch.warp_max[thread >> 5] = most;
    scratch.warp_min[thread >> 5] = least;
  }
  plan_barrier();
  if (thread == 0) {
    for (i32 w = 1; w < abi::kProducerWarps; ++w) {
      most = scratch.warp_max[w] > most ? scratch.warp_max[w] : most;
      least = scratch.warp_min[w] < least ? scratch.warp_min[w] : least;
    }
    table.total_cost = running;
    table.max_rows = most;
    table.min_rows = least;
  }
  plan_barrier();
}

// The window that begins at `begin` (an expert or a block). All 128 threads call it.
template <Schedule S, Problem P>
inline void plan_window(const GemmParams& p, i64 begin, SegmentTable& table, PlanScratch& scratch,
                        i32 thread) {
  if (routes_by_blocks<P.routing>(p)) {
    if constexpr (P.routing != RoutingKind::grouped_masked)
      collect_runs<P.routing, S.block_m>(p, begin, table, scratch, thread);
  } else {
    if constexpr (P.routing != RoutingKind::indexed)
      collect_experts<P.routing>(p, begin, table, scratch, thread);
  }
  plan_barrier();
  accumulate_costs(WorkShape::of(S, P), table, scratch, thread);
}

// Whether another window follows the one just planned.
template <Schedule S, Problem P>
inline bool has_more(const GemmParams& p, const SegmentTable& table) {
  if (!routes_by_blocks<P.routing>(p)) return table.next < p.experts;
  const i64 limit = positions<P.routing>(p);
  const i32 block_rows = rows_of_block<P.routing>(S.block_m);
  return table.next < (P.routing == RoutingKind::indexed ? limit / block_rows
                                                         : abi::ceil_div(limit, block_rows));
}

}  // namespace chord::device
