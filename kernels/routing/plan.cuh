// Builds the segment table of one window of the routing, in shared memory, by one warpgroup. Kimi's
// layers have at most 385 segments, so one window is the rule; a routing with more runs than the
// table holds is done window after window, each in whole tiles.
//
// What it costs is latency, of global loads that depend on each other and of barriers. So all loads
// of a first chunk leave together, the padded count beside the blocks that it bounds: the buffers
// hold `rows` ids whatever the count says, and what lies behind it is read and not used. Only
// blocks of many rows need a second load, of the last block of every run.
#pragma once

#include "kernels/ptx/control.cuh"
#include "kernels/routing/rows.cuh"
#include "kernels/routing/work_list.cuh"

namespace chord::device {

inline constexpr i32 kPlanWarps = 4;
inline constexpr i32 kPlanThreads = 32 * kPlanWarps;

// One word per warp, twice: a chunk may write while a slow warp still reads the chunk before. Lives
// in the kernel's shared memory.
struct PlanScratch {
  i64 cost[2][kPlanWarps];
  i32 found[2][kPlanWarps];
  i32 most[2][kPlanWarps];
  i32 least[2][kPlanWarps];
  i32 tiles[2][kPlanWarps];
};

inline void plan_barrier() { ptx::bar_sync<1, kPlanThreads>(); }

// How many of the 128 threads hold the flag, and how many of those before this one. One barrier;
// `chunk` alternates the scratch.
struct FlagCount {
  i32 before, total;
};
inline FlagCount count_flags(bool flag, PlanScratch& scratch, i32 chunk, i32 thread) {
  const abi::u32 votes = __ballot_sync(0xffffffffu, flag);
  i32(&found)[kPlanWarps] = scratch.found[chunk & 1];
  if ((thread & 31) == 0) found[thread >> 5] = __popc(votes);
  plan_barrier();
  FlagCount place{__popc(votes & ((1u << (thread & 31)) - 1)), 0};
#pragma unroll
  for (i32 w = 0; w < kPlanWarps; ++w) {
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

// Rows from the start of a block to its last owned entry; Ahead loads are on their way at a time.
template <RoutingKind Kind, i32 Ahead>
inline i32 rows_owned_in_block(const GemmParams& p, i64 position, i32 expert, i32 block_rows,
                               i64 limit) {
  const i32* entry = entries<Kind>(p) + position;
  i32 owned = 0;
  const i32 rows = static_cast<i32>(abi::min_of(block_rows, limit - position));
  if (rows == block_rows) {
#pragma unroll Ahead
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

// From the last block of every run, a whole one, to the rows of the run, rounded up to eight: no
// plan asks for more, and what lies behind the last row is padding. Owned entries are a prefix of
// their block, so a few of them are looked at in two steps, by four lanes to a block, and not all:
// every CTA reads them, and all of 384 blocks of 96 took 7 us of TP8 down on H200, where this
// takes 2.
template <RoutingKind Kind, i32 BlockRows>
inline void round_up_rows_of_runs(const GemmParams& p, SegmentTable& table, i32 count, i32 thread) {
  constexpr i32 kLanes = 4;
  constexpr i32 kRuns = kPlanThreads / kLanes;  // at a time
  constexpr i32 kTogether = 6;                  // whose loads leave together
  constexpr i32 kGroups = BlockRows / 8;
  constexpr i32 kStride = (kGroups + kLanes - 1) / kLanes;  // of the groups looked at first
  constexpr i32 kRounds = (kStride - 1 + kLanes - 1) / kLanes;
  const i32 lane = thread % kLanes;
  for (i32 first = 0; first < count; first += kRuns * kTogether) {
    const auto run_of = [&](i32 i) {  // any run, past the end
      const i32 run = first + i * kRuns + thread / kLanes;
      return run < count ? run : count - 1;
    };
    // Whether the first entry of a group is owned; false behind the block.
    const auto entry_of = [&](i32 run, i32 group) {
      const i64 position = table.cost_before[run] * BlockRows;
      return entries<Kind>(p)[position + (group < kGroups ? group : 0) * 8];
    };
    const auto count_owned = [&](i32 run, i32 group, i32 end, i32 entry) {
      i32 owned = group < end && is_owned<Kind>(p, entry, table.expert[run]) ? 1 : 0;
      owned += __shfl_xor_sync(0xffffffffu, owned, 1);
      return owned + __shfl_xor_sync(0xffffffffu, owned, 2);
    };
    i32 entry[kTogether], groups[kTogether];
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i) entry[i] = entry_of(run_of(i), lane * kStride);
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i) {
      const i32 owned = count_owned(run_of(i), lane * kStride, kGroups, entry[i]);
      groups[i] = owned == 0 ? 0 : (owned - 1) * kStride + 1;
    }
    i32 more[kTogether][kRounds > 0 ? kRounds : 1];
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i)
#pragma unroll
      for (i32 round = 0; round < kRounds; ++round)
        more[i][round] = entry_of(run_of(i), groups[i] + round * kLanes + lane);
#pragma unroll
    for (i32 i = 0; i < kTogether; ++i) {
      const i32 run = run_of(i);
      const i32 known = groups[i];
      const i32 end = known == 0                      ? 0
                      : known - 1 + kStride < kGroups ? known - 1 + kStride
                                                      : kGroups;
#pragma unroll
      for (i32 round = 0; round < kRounds; ++round)
        groups[i] += count_owned(run, known + round * kLanes + lane, end, more[i][round]);
      if (lane == 0)
        table.rows[run] =
            static_cast<i32>(table.cost_before[run] * BlockRows - table.first[run]) + groups[i] * 8;
    }
  }
}

// One segment per run of neighbouring blocks of one expert; blocks whose expert is outside [0, E)
// are nobody's. Blocks [begin, ...) until the table is full. The loads of Chunks times 128 blocks
// leave together.
template <RoutingKind Kind, i32 BlockM, i32 Chunks, class Meanwhile>
inline void collect_runs(const GemmParams& p, i64 begin, SegmentTable& table, PlanScratch& scratch,
                         i32 thread, const Meanwhile& meanwhile) {
  constexpr i32 block_rows = rows_of_block<Kind>(BlockM);
  // Small blocks are read beside their experts; of large ones only the last of each run is read.
  // (An id of indexed routing is owned whoever the expert is.)
  constexpr bool kEarly = Kind == RoutingKind::indexed && block_rows * Chunks <= 64;
  constexpr bool kOnlyWhole = Kind == RoutingKind::indexed;  // a padded count is whole blocks
  constexpr i32 kAhead = Chunks > 1 ? 16 : 4;
  const i64 limit = positions<Kind>(p);
  const i64 blocks = kOnlyWhole ? limit / block_rows : abi::ceil_div(limit, block_rows);
  const i64 held = kOnlyWhole ? p.rows / block_rows : abi::ceil_div(p.rows, block_rows);
  i32 count = 0, turn = 0;
  i64 first = begin;
  do {
    i32 expert[Chunks], before[Chunks], after[Chunks], owned[Chunks];
#pragma unroll
    for (i32 c = 0; c < Chunks; ++c) {
      const i64 block = first + c * kPlanThreads + thread;
      const bool is_held = block < held;
      expert[c] = is_held ? expert_of_block<Kind>(p, block) : kNoRow;
      before[c] = is_held && block > begin ? expert_of_block<Kind>(p, block - 1) : kNoRow;
      after[c] = block + 1 < held ? expert_of_block<Kind>(p, block + 1) : kNoRow;
      owned[c] = kEarly && is_held ? rows_owned_in_block<Kind, kAhead>(p, block * block_rows, 0,
                                                                       block_rows, p.rows)
                                   : 0;
    }
    if (first == begin) meanwhile();
#pragma unroll
    for (i32 c = 0; c < Chunks; ++c, ++turn) {
      const i64 block = first + c * kPlanThreads + thread;
      if (c > 0 && block - thread >= blocks) break;  // for all threads alike
      const bool valid = block < blocks && is_expert(p, expert[c]);
      const bool starts = valid && before[c] != expert[c];
      const bool ends = valid && (after[c] != expert[c] || block + 1 == blocks);
      const FlagCount place = count_flags(starts, scratch, turn, thread);
      const i32 index = count + place.before;
      if (starts && index < abi::kMaxSegments) {
        table.first[index] = block * block_rows;
        table.expert[index] = expert[c];
      }
      if (starts && index == abi::kMaxSegments) table.next = static_cast<i32>(block);
      const i32 run = index + (starts ? 1 : 0) - 1;
      if (ends && run < abi::kMaxSegments) {
        table.cost_before[run] = block;  // its last block, for now
        table.rows[run] = owned[c];      // of the last block, for now
      }
      count += place.total;
    }
    first += Chunks * kPlanThreads;
  } while (first < blocks && count <= abi::kMaxSegments);

  if (thread == 0) {
    table.has_more = count > abi::kMaxSegments;
    if (count <= abi::kMaxSegments) table.next = static_cast<i32>(blocks);
  }
  if (count > abi::kMaxSegments) count = abi::kMaxSegments;
  plan_barrier();
  if constexpr (kOnlyWhole && !kEarly && Chunks > 1) {
    round_up_rows_of_runs<Kind, block_rows>(p, table, count, thread);
  } else {
    for (i32 run = thread; run < count; run += kPlanThreads) {
      const i64 last = table.cost_before[run] * block_rows;
      const i32 owned =
          kEarly ? table.rows[run]
                 : rows_owned_in_block<Kind, kAhead>(p, last, table.expert[run], block_rows, limit);
      table.rows[run] = static_cast<i32>(last - table.first[run]) + owned;
    }
  }
  if (thread == 0) table.count = count;
  plan_barrier();
}

// Prefix costs, the extremes that choose between whole tiles and an even split, and, where waves
// are dealt out, prefix counts of tiles.
template <Schedule S>
inline void accumulate_costs(const WorkShape& shape, SegmentTable& table, WaveTable* waves,
                             PlanScratch& scratch, i32 thread) {
  constexpr bool kCountsTiles = S.mainloop == abi::Mainloop::wgmma;
  const i32 lane = thread & 31, warp = thread >> 5;
  i64 running = 0;
  i32 most = 0, least = 0x7fffffff, running_tiles = 0;
  for (i32 chunk = 0; chunk * kPlanThreads < table.count; ++chunk) {
    const i32 segment = chunk * kPlanThreads + thread;
    const i32 rows = segment < table.count ? table.rows[segment] : 0;
    const Tiling tiling = shape.tiling(rows);
    const i64 cost = shape.cost_of(tiling);
    const i32 tiles = tiling.count * shape.column_tiles;
    i64 inclusive = cost;
    i32 inclusive_tiles = tiles;
#pragma unroll
    for (i32 distance = 1; distance < 32; distance *= 2) {
      const i64 below = __shfl_up_sync(0xffffffffu, inclusive, distance);
      if (lane >= distance) inclusive += below;
      if constexpr (kCountsTiles) {
        const i32 tiles_below = __shfl_up_sync(0xffffffffu, inclusive_tiles, distance);
        if (lane >= distance) inclusive_tiles += tiles_below;
      }
    }
    const i32 warp_most = __reduce_max_sync(0xffffffffu, rows);
    const i32 warp_least = __reduce_min_sync(0xffffffffu, rows > 0 ? rows : 0x7fffffff);
    const i32 half = chunk & 1;
    if (lane == 31) {
      scratch.cost[half][warp] = inclusive;
      scratch.most[half][warp] = warp_most;
      scratch.least[half][warp] = warp_least;
      if constexpr (kCountsTiles) scratch.tiles[half][warp] = inclusive_tiles;
    }
    plan_barrier();
    i64 before = running + inclusive - cost;
    i32 tiles_before = running_tiles + inclusive_tiles - tiles;
#pragma unroll
    for (i32 w = 0; w < kPlanWarps; ++w) {
      const i64 sum = scratch.cost[half][w];
      if (w < warp) before += sum;
      running += sum;
      most = scratch.most[half][w] > most ? scratch.most[half][w] : most;
      least = scratch.least[half][w] < least ? scratch.least[half][w] : least;
      if constexpr (kCountsTiles) {
        if (w < warp) tiles_before += scratch.tiles[half][w];
        running_tiles += scratch.tiles[half][w];
      }
    }
    if (segment < table.count) {
      table.cost_before[segment] = before;
      table.tiles[segment] = tiling.count;
      table.tile_rows[segment] = tiling.rows;
      if constexpr (kCountsTiles) waves->tiles_before[segment] = tiles_before;
    }
  }
  if (thread == 0) {
    table.total_cost = running;
    table.max_rows = most;
    table.min_rows = least;
    if constexpr (kCountsTiles) waves->tiles = running_tiles;
  }
  plan_barrier();
}

constexpr i32 shift_to_fit(i64 cost, i64 limit) {
  i32 shift = 0;
  while ((cost >> shift) > limit) ++shift;
  return shift;
}

// One warp: from the ends of circles to shares of `rest`.
inline void share_out(i64 rest, i32 shift, WaveTable& waves, i32 ctas, i32 lane) {
  constexpr i32 kEach = abi::kMaxCtas / 32;
  const auto scan = [&](i32 value) {
#pragma unroll
    for (i32 distance = 1; distance < 32; distance *= 2) {
      const i32 below = __shfl_up_sync(0xffffffffu, value, distance);
      if (lane >= distance) value += below;
    }
    return value;
  };
  const auto last = [](i32 value) { return __shfl_sync(0xffffffffu, value, 31); };
  const auto* extras = reinterpret_cast<const i32*>(waves.share_before);
  i32 extra[kEach];
  i32 sum = 0, total = 0;
#pragma unroll
  for (i32 i = 0; i < kEach; ++i) {
    const i32 cta = lane * kEach + i;
    sum += cta < ctas ? extras[cta] : 0;
    extra[i] = sum;
  }
  const i32 before = scan(sum) - sum;
#pragma unroll
  for (i32 i = 0; i < kEach; ++i) {
    extra[i] += before;
    if (lane * kEach + i < ctas) total += extra[i];
  }
  const i32 scaled_rest = static_cast<i32>(rest >> shift);
  const i32 level =
      static_cast<i32>((static_cast<u32>(scaled_rest) + static_cast<u32>(last(scan(total)))) /
                       static_cast<u32>(ctas));
  sum = 0;
#pragma unroll
  for (i32 i = 0; i < kEach; ++i) {
    if (lane * kEach + i < ctas && extra[i] < level) sum += level - extra[i];
    extra[i] = sum;  // shares of this lane's CTAs up to this one
  }
  const i32 through = scan(sum);
  const i32 all = last(through);
  // One where no CTA has more than its part already.
  const float scale = all > scaled_rest ? static_cast<float>(scaled_rest) / all : 1.0f;
  __syncwarp();
#pragma unroll
  for (i32 i = 0; i < kEach; ++i) {
    const i32 cta = lane * kEach + i;
    // Range r is CTA ctas - 1 - r: before it come the CTAs above.
    const i32 share = all - (through - sum + extra[i]);
    const i64 scaled = scale < 1.0f ? static_cast<i64>(share * scale) : share;
    if (cta < ctas) waves.share_before[ctas - 1 - cta] = abi::min_of(scaled << shift, rest);
  }
}

// Deals whole tiles out to the CTAs in turn, all but the last one or two waves of them, and gives
// each CTA a share of the rest: what it lacks of an equal cost. A segment gives some CTAs, a circle
// of neighbours, one tile more than the others; the table holds the ends of these circles first,
// then their sums, then the shares. Costs are 32-bit here, scaled down if a tile's is large: 64-bit
// atomics and divisions took 4 of 5 us.
template <Schedule S, Problem P>
inline void deal_waves(const SegmentTable& table, WaveTable& waves, i32 ctas, i32 thread) {
  constexpr WorkShape kShape = WorkShape::of(S, P);
  constexpr i32 kShift =
      shift_to_fit(static_cast<i64>(kShape.k_stages) * kShape.unit_cost(S.tile_m), 1 << 14);
  const i32 full_waves = static_cast<u32>(waves.tiles) / static_cast<u32>(ctas) - 1;
  if (full_waves < 1) {
    if (thread == 0) waves.waves = 0;
    plan_barrier();
    return;
  }
  const i32 dealt = full_waves * ctas;
  auto* extras = reinterpret_cast<i32*>(waves.share_before);
  for (i32 i = thread; i <= ctas; i += kPlanThreads) extras[i] = 0;
  plan_barrier();
  for (i32 segment = thread; segment < table.count; segment += kPlanThreads) {
    const i32 first = waves.tiles_before[segment];
    const i32 tiles = table.tiles[segment] * kShape.column_tiles;
    if (first > dealt || tiles == 0) continue;
    const i32 count = first + tiles < dealt ? tiles : dealt - first;
    const i64 tile_cost =
        static_cast<i64>(kShape.k_stages) * kShape.unit_cost(table.tile_rows[segment]);
    if (count < tiles) waves.dealt_cost = table.cost_before[segment] + count * tile_cost;
    const i32 more = static_cast<u32>(count) % static_cast<u32>(ctas);
    const i32 begin = static_cast<u32>(first) % static_cast<u32>(ctas);
    if (more == 0) continue;
    const i32 scaled = static_cast<i32>(tile_cost >> kShift);
    atomicAdd(&extras[begin], scaled);
    if (begin + more < ctas) {
      atomicAdd(&extras[begin + more], -scaled);
    } else if (begin + more > ctas) {
      atomicAdd(&extras[0], scaled);
      atomicAdd(&extras[begin + more - ctas], -scaled);
    }
  }
  plan_barrier();
  if (thread < 32) share_out(table.total_cost - waves.dealt_cost, kShift, waves, ctas, thread);
  if (thread == 0) waves.waves = full_waves;
  plan_barrier();
}

// The window that begins at `begin` (an expert or a block). All threads of a warpgroup call it, and
// each calls `meanwhile` when its first loads are on their way. `waves` is there for wgmma.
template <Schedule S, Problem P, class Meanwhile>
inline void plan_window(const GemmParams& p, i64 begin, SegmentTable& table, WaveTable* waves,
                        PlanScratch& scratch, i32 thread, const Meanwhile& meanwhile) {
  constexpr WorkShape kShape = WorkShape::of(S, P);
  // The producer warpgroup of mma has few registers, and seldom many blocks.
  constexpr i32 kChunks = S.mainloop == abi::Mainloop::mma ? 1 : 4;
  if (routes_by_blocks<P.routing>(p)) {
    if constexpr (P.routing != RoutingKind::grouped_masked)
      collect_runs<P.routing, S.block_m, kChunks>(p, begin, table, scratch, thread, meanwhile);
  } else {
    if constexpr (P.routing != RoutingKind::indexed)
      collect_experts<P.routing>(p, begin, table, scratch, thread, meanwhile);
  }
  accumulate_costs<S>(kShape, table, waves, scratch, thread);
  if constexpr (S.mainloop == abi::Mainloop::wgmma) {
    if constexpr (S.split == abi::Split::automatic) {
      deal_waves<S, P>(table, *waves, static_cast<i32>(gridDim.x), thread);
    } else {
      if (thread == 0) waves->waves = 0;
      plan_barrier();
    }
  }
}

}  // namespace chord::device
