// Builds the segment table of one window of the routing, in shared memory, by the producer
// warpgroup (128 threads). Kimi's layers have at most 385 segments, so one window is the rule; a
// routing with more runs than the table holds is done window after window, each in whole tiles.
//
// What it costs is latency, of global loads that depend on each other and of barriers. So all loads
// of a first chunk leave together, the padded count beside the blocks that it bounds: the buffers
// hold `rows` ids whatever the count says, and what lies behind it is read and not used. Only
// blocks of more than 32 rows need a second load, of the last block of every run.
#pragma once

#include "kernels/ptx/control.cuh"
#include "kernels/routing/rows.cuh"
#include "kernels/routing/work_list.cuh"

namespace chord::device {

inline constexpr i32 kPlanThreads = 32 * abi::kProducerWarps;

// One word per warp, twice: a chunk may write while a slow warp still reads the chunk before. Lives
// in the kernel's shared memory.
struct PlanScratch {
  i64 cost[2][abi::kProducerWarps];
  i32 found[2][abi::kProducerWarps];
  i32 most[2][abi::kProducerWarps];
  i32 least[2][abi::kProducerWarps];
};

inline void plan_barrier() { ptx::bar_sync<1, kPlanThreads>(); }

// How many of the 128 threads hold the flag, and how many of those before this one. One barrier;
// `chunk` alternates the scratch.
struct FlagCount {
  i32 before, total;
};
inline FlagCount count_flags(bool flag, PlanScratch& scratch, i32 chunk, i32 thread) {
  const abi::u32 votes = __ballot_sync(0xffffffffu, flag);
  i32(&found)[abi::kProducerWarps] = scratch.found[chunk & 1];
  if ((thread & 31) == 0) found[thread >> 5] = __popc(votes);
  plan_barrier();
  FlagCount place{__popc(votes & ((1u << (thread & 31)) - 1)), 0};
#pragma unroll
  for (i32 w = 0; w < abi::kProducerWarps; ++w) {
    if (w < thread >> 5) place.before += found[w];
    place.total += found[w];
  }
  return place;
}

// One segment per expert that has rows, of as many experts from `begin` on as the table holds.
template <RoutingKind Kind, class Meanwhile>
inline void collect_experts(const GemmParams& p, i64 begin, SegmentTable& table,
                            PlanScratch& scratch, i32 thread, const Meanwhile& meanwhile) {
  const i32 first = static_cast<i32>(begin);
  const i32 end = static_cast<i32>(abi::min_of(p.experts, begin + abi::kMaxSegments));
  i32 count = 0;
  for (i32 chunk = 0; first + chunk * kPlanThreads < end; ++chunk) {
    const i32 expert = first + chunk * kPlanThreads + thread;
    const ExpertRows rows = expert < end ? rows_of_expert<Kind>(p, expert) : ExpertRows{};
    if (chunk == 0) meanwhile();
    const FlagCount place = count_flags(rows.rows > 0, scratch, chunk, thread);
    if (rows.rows > 0) {
      const i32 index = count + place.before;
      table.first[index] = rows.first;
      table.expert[index] = expert;
      table.rows[index] = rows.rows;
    }
    count += place.total;
  }
  if (thread == 0) {
    table.count = count;
    table.next = end;
    table.has_more = end < p.experts;
  }
  plan_barrier();
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
template <RoutingKind Kind, i32 BlockM, class Meanwhile>
inline void collect_runs(const GemmParams& p, i64 begin, SegmentTable& table, PlanScratch& scratch,
                         i32 thread, const Meanwhile& meanwhile) {
  constexpr i32 block_rows = rows_of_block<Kind>(BlockM);
  // Small blocks are read beside their experts; of large ones only the last of each run is read.
  // (An id of indexed routing is owned whoever the expert is.)
  constexpr bool kEarly = Kind == RoutingKind::indexed && block_rows <= 32;
  constexpr bool kOnlyWhole = Kind == RoutingKind::indexed;  // a padded count is whole blocks
  const i64 limit = positions<Kind>(p);
  const i64 blocks = kOnlyWhole ? limit / block_rows : abi::ceil_div(limit, block_rows);
  const i64 held = kOnlyWhole ? p.rows / block_rows : abi::ceil_div(p.rows, block_rows);
  i32 count = 0, chunk = 0;
  i64 block = begin + thread;
  do {
    const bool is_held = block < held;
    const i32 expert = is_held ? expert_of_block<Kind>(p, block) : kNoRow;
    i32 before = is_held && block > begin ? expert_of_block<Kind>(p, block - 1) : kNoRow;
    i32 after = block + 1 < held ? expert_of_block<Kind>(p, block + 1) : kNoRow;
    const i32 owned = kEarly && is_held
                          ? rows_owned_in_block<Kind>(p, block * block_rows, 0, block_rows, p.rows)
                          : 0;
    if (chunk == 0) meanwhile();
    const bool valid = block < blocks && is_expert(p, expert);
    const bool starts = valid && before != expert;
    const bool ends = valid && (after != expert || block + 1 == blocks);
    const FlagCount place = count_flags(starts, scratch, chunk, thread);
    const i32 index = count + place.before;
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
    count += place.total;
    ++chunk;
    block += kPlanThreads;
  } while (block - thread < blocks && count <= abi::kMaxSegments);

  if (thread == 0) {
    table.has_more = count > abi::kMaxSegments;
    if (count <= abi::kMaxSegments) table.next = static_cast<i32>(blocks);
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
  plan_barrier();
}

// Prefix costs, and the extremes that choose between whole tiles and an even split.
inline void accumulate_costs(const WorkShape& shape, SegmentTable& table, PlanScratch& scratch,
                             i32 thread) {
  const i32 lane = thread & 31, warp = thread >> 5;
  i64 running = 0;
  i32 most = 0, least = 0x7fffffff;
  for (i32 chunk = 0; chunk * kPlanThreads < table.count; ++chunk) {
    const i32 segment = chunk * kPlanThreads + thread;
    const i32 rows = segment < table.count ? table.rows[segment] : 0;
    const Tiling tiling = tiling_of(rows, shape.tile_m);
    const i64 cost = shape.cost_of(tiling);
    i64 inclusive = cost;
#pragma unroll
    for (i32 distance = 1; distance < 32; distance *= 2) {
      const i64 below = __shfl_up_sync(0xffffffffu, inclusive, distance);
      if (lane >= distance) inclusive += below;
    }
    const i32 warp_most = __reduce_max_sync(0xffffffffu, rows);
    const i32 warp_least = __reduce_min_sync(0xffffffffu, rows > 0 ? rows : 0x7fffffff);
    const i32 half = chunk & 1;
    if (lane == 31) {
      scratch.cost[half][warp] = inclusive;
      scratch.most[half][warp] = warp_most;
      scratch.least[half][warp] = warp_least;
    }
    plan_barrier();
    i64 before = running + inclusive - cost;
#pragma unroll
    for (i32 w = 0; w < abi::kProducerWarps; ++w) {
      const i64 sum = scratch.cost[half][w];
      if (w < warp) before += sum;
      running += sum;
      most = scratch.most[half][w] > most ? scratch.most[half][w] : most;
      least = scratch.least[half][w] < least ? scratch.least[half][w] : least;
    }
    if (segment < table.count) {
      table.cost_before[segment] = before;
      table.tiles[segment] = tiling.count;
      table.tile_rows[segment] = tiling.rows;
    }
  }
  if (thread == 0) {
    table.total_cost = running;
    table.max_rows = most;
    table.min_rows = least;
  }
  plan_barrier();
}

// The window that begins at `begin` (an expert or a block). All 128 threads call it, and each calls
// `meanwhile` when its first loads are on their way.
template <Schedule S, Problem P, class Meanwhile>
inline void plan_window(const GemmParams& p, i64 begin, SegmentTable& table, PlanScratch& scratch,
                        i32 thread, const Meanwhile& meanwhile) {
  if (routes_by_blocks<P.routing>(p)) {
    if constexpr (P.routing != RoutingKind::grouped_masked)
      collect_runs<P.routing, S.block_m>(p, begin, table, scratch, thread, meanwhile);
  } else {
    if constexpr (P.routing != RoutingKind::indexed)
      collect_experts<P.routing>(p, begin, table, scratch, thread, meanwhile);
  }
  accumulate_costs(WorkShape::of(S, P), table, scratch, thread);
}

}  // namespace chord::device
