// The one work list: which expert, which rows, which columns, which part of K, for which CTA.
//
// A segment is the rows of one expert that lie together. It is cut into tiles of at most tile_m
// rows (all of a segment as wide as its widest), each tile covers tile_n output columns, and a tile
// is a row of k_stages units. Units carry a cost, so "an equal share" means equal time. Order:
// segment, column tile, row tile, k; an expert's weight tile is read by neighbours in time.
//
// The first waves of the list may be dealt out as whole tiles, one to each CTA in turn: CTAs then
// work side by side on few experts, whose rows and weights the L2 holds, and few sums travel. What
// is left, one or two tiles per CTA, is cut so that all CTAs end together.
//
// Ranges cut the rest of the list into consecutive pieces of equal cost, or, behind waves, of what
// their CTA still lacks. Where a range begins inside a tile,
// its first piece is stored as a partial and the range that holds the tile's start adds the
// partials of the ranges after it, in order: fixed order, same bits every time. Range r is run by
// CTA ranges - 1 - r, so that whoever waits, waits for a CTA of lower index; CTAs start in index
// order, so the one waited for is running or done even when other kernels hold part of the GPU.
//
// Where rows stay in shared memory (resident) a tile has all columns, its units are panels of them,
// and a piece is a run of panels: complete by itself, so nothing is added up, nobody waits, and CTA
// r runs range r. CTAs are not equally fast there (H200, TP8 down at 1024 tokens: equal shares
// ended between 122 and 159 us, as the SMs lie), so the last tenth of the list is cut into short
// ranges, and whoever is free takes the next. Where there is but one buffer of rows, bringing rows
// more often costs more than that gives.
//
// Pure functions of the table; g++ compiles them, and a test walks every range on the CPU and
// counts each unit once.
#pragma once

#include "chord/abi/problem.h"
#include "chord/abi/schedule.h"

namespace chord::device {

using abi::i32;
using abi::i64;
using abi::Problem;
using abi::Schedule;
using abi::u32;

// Cost of a unit by its n8 steps, measured: one waits for memory, five for the tensor cores.
inline constexpr i32 kOneStepCost = 100;
inline constexpr i32 kSecondStepCost = 16;
inline constexpr i32 kThirdStepCost = 12;
inline constexpr i32 kFurtherStepCost = 22;
// wgmma: cost of a unit besides its width. (H200, 256 columns: 320 us in tiles of 64 rows, 440 in
// tiles of 128.)
inline constexpr i32 kWidthlessCost = 60;
// resident: cost of a panel besides its width. (H200, TP8 down.)
inline constexpr i32 kWidthlessPanelCost = 24;
inline constexpr i32 kTakenPercent = 10;   // of the cost, in short ranges
inline constexpr i32 kTakenPerCta = 4;     // short ranges
inline constexpr i32 kFewPanels = 40;      // of a CTA: too few to be worth a counter
inline constexpr i32 kMinPieceSlices = 4;  // shorter pieces of K are given to a neighbour
inline constexpr i32 kFullWave = 94;       // per cent of its places that whole tiles must fill

struct SegmentTable {
  i64 cost_before[abi::kMaxSegments];  // of the segments before it
  i64 first[abi::kMaxSegments];        // position of its first row: in sorted_ids, or a row of x
  i32 expert[abi::kMaxSegments];
  i32 rows[abi::kMaxSegments];
  i32 tiles[abi::kMaxSegments];      // row tiles
  i32 tile_rows[abi::kMaxSegments];  // of each but the last; a multiple of 8
  i64 total_cost;
  i32 count;
  i32 max_rows;
  i32 min_rows;
  i32 next;      // where the next window of the routing begins
  i32 has_more;  // whether there is one
};
static_assert(sizeof(SegmentTable) <= abi::segment_table_bytes());

// A place in the list: unit k of tile `tile` (column tile * row tiles + row tile) of a segment.
struct Place {
  i32 segment;
  i32 tile;
  i32 k;

  constexpr bool operator==(const Place&) const = default;
};

// What one CTA does of a list: tiles of the waves, then a range.
struct CtaWork {
  Place first, end;  // of the range; equal if it is empty
  i32 range;         // kNoRange: nothing at all
  i32 contributors;  // to the tile that the range begins and does not finish
  i32 waves;
};
inline constexpr i32 kNoRange = -1;

// Where waves of whole tiles are dealt out: tiles before a segment, and the shares of the rest.
struct WaveTable {
  i64 share_before[abi::kMaxCtas + 1];  // of the ranges before it
  i32 tiles_before[abi::kMaxSegments];
  i64 dealt_cost;  // of all tiles of the waves
  i32 tiles;
  i32 waves;
};

// A division of 64 bits is a call of some hundred instructions, which a plan pays in latency;
// nearly every quotient here fits half of them.
constexpr i64 quotient(i64 a, i64 b) {
  if (((a | b) >> 32) == 0) return static_cast<u32>(a) / static_cast<u32>(b);
  return a / b;
}

struct Tiling {
  i32 count = 0;  // row tiles of the segment
  i32 rows = 0;   // of each but the last; a multiple of 8
};

constexpr Tiling tiling_of(i32 rows, i32 tile_m) {
  if (rows <= 0) return {0, 0};
  const u32 count = (static_cast<u32>(rows) + tile_m - 1) / tile_m;
  const u32 share = count == 1 ? rows : (rows + count - 1) / count;
  return {static_cast<i32>(count), static_cast<i32>((share + 7) / 8 * 8)};
}

constexpr i32 mma_unit_cost(i32 tile_rows) {
  const i32 steps = tile_rows / 8;
  return kOneStepCost + (steps > 1 ? kSecondStepCost : 0) + (steps > 2 ? kThirdStepCost : 0) +
         (steps > 3 ? (steps - 3) * kFurtherStepCost : 0);
}

// The sizes that schedule and problem fix.
struct WorkShape {
  Schedule schedule;
  i32 column_tiles;
  i32 k_stages;   // units of a tile; resident: panels
  i32 min_piece;  // units

  static constexpr WorkShape of(const Schedule& s, const Problem& p) {
    if (abi::is_resident(s)) return {s, 1, static_cast<i32>(abi::ceil_div(p.n, s.tile_n)), 1};
    return {s, static_cast<i32>(abi::ceil_div(p.n, s.tile_n)),
            static_cast<i32>(abi::ceil_div(p.k / abi::kAtomDepth, s.slices_per_stage)),
            static_cast<i32>(abi::ceil_div(kMinPieceSlices, s.slices_per_stage))};
  }

  constexpr Tiling tiling(i32 rows) const { return tiling_of(rows, schedule.tile_m); }

  constexpr i32 unit_cost(i32 tile_rows) const {
    if (schedule.mainloop == abi::Mainloop::mma) return mma_unit_cost(tile_rows);
    return (abi::is_resident(schedule) ? kWidthlessPanelCost : kWidthlessCost) +
           abi::width_of(schedule, tile_rows);
  }

  constexpr i64 cost_of(const Tiling& tiling) const {
    if (tiling.count == 0) return 0;
    return static_cast<i64>(tiling.count) * (column_tiles * k_stages) * unit_cost(tiling.rows);
  }
};

// How the list is cut.
struct Cut {
  i32 ranges = 0;
  bool whole_tiles = false;
  const WaveTable* waves = nullptr;  // dealt out before the ranges
  i32 taken = 0;      // of the ranges, the last ones, short: whoever is free takes the next
  i64 head_cost = 0;  // of those before them, if there are any
};

inline Cut cut_of(const SegmentTable& table, const WorkShape& shape, i32 ctas, bool is_only_window,
                  const WaveTable* waves = nullptr) {
  const abi::Split split = shape.schedule.split;
  if (waves != nullptr && waves->waves > 0) return {ctas, !is_only_window, waves};
  const i64 dearest = shape.unit_cost(shape.tiling(table.max_rows).rows);
  bool whole = split == abi::Split::whole_tiles || !is_only_window;
  if (!whole && split == abi::Split::automatic && shape.schedule.mainloop == abi::Mainloop::mma) {
    const bool uniform = table.max_rows <= 8 || (table.min_rows == 16 && table.max_rows == 16);
    if (uniform && table.max_rows <= shape.schedule.tile_m) {
      // Whole tiles need no partials: 1 us at 20 tokens of EP8 gate/up on H200 (47 experts in 376
      // tiles: 95 % of three waves) and 2 us at down. Emptier waves lose more.
      const i64 tiles = static_cast<i64>(table.count) * shape.column_tiles;
      const i64 waves_of_tiles = quotient(tiles + ctas - 1, ctas);
      whole = tiles * 100 >= waves_of_tiles * ctas * kFullWave;
    }
  }
  if (whole) return {ctas, true};
  if (abi::row_buffers(shape.schedule) > 1 && split == abi::Split::automatic &&
      table.total_cost >= kFewPanels * ctas * dearest)
    return {ctas * (1 + kTakenPerCta), false, nullptr, ctas * kTakenPerCta,
            quotient(table.total_cost, 100) * (100 - kTakenPercent)};
  // Two smallest pieces of a dear tile at least, so that no range is empty inside a tile.
  const i64 most = abi::max_of(1, quotient(table.total_cost, 2 * shape.min_piece * dearest));
  return {static_cast<i32>(abi::min_of(ctas, most)), false};
}

constexpr bool is_before(const Place& a, const Place& b) {
  if (a.segment != b.segment) return a.segment < b.segment;
  if (a.tile != b.tile) return a.tile < b.tile;
  return a.k < b.k;
}

class WorkList {
 public:
  WorkList(const SegmentTable& table, const WorkShape& shape, const Cut& cut = {})
      : table_(table), shape_(shape), cut_(cut) {}

  i32 tiles_in(i32 segment) const { return shape_.column_tiles * table_.tiles[segment]; }

  // The tile after, at its start. Segments without rows are stepped over.
  Place next_tile(Place place) const {
    place.k = 0;
    if (++place.tile < tiles_in(place.segment)) return place;
    place.tile = 0;
    ++place.segment;
    while (place.segment < table_.count && table_.rows[place.segment] <= 0) ++place.segment;
    return place;
  }

  // The tile `tiles` tiles after, at its start; the end of the list behind its last.
  Place tiles_after(Place place, i32 tiles) const {
    place.k = 0;
    place.tile += tiles;
    while (place.segment < table_.count && place.tile >= tiles_in(place.segment)) {
      place.tile -= tiles_in(place.segment);
      ++place.segment;
    }
    if (place.segment == table_.count) place.tile = 0;
    return place;
  }

  i32 k_stages() const { return shape_.k_stages; }
  i32 waves() const { return cut_.waves == nullptr ? 0 : cut_.waves->waves; }

  // Where range r begins; r == ranges gives the end of the list.
  Place start_of(i32 range) const {
    if (range >= cut_.ranges) return {table_.count, 0, 0};
    const i64 cost = cost_before(range);
    i32 low = 0, high = table_.count - 1;
    while (low < high) {
      const i32 middle = (low + high + 1) / 2;
      if (table_.cost_before[middle] <= cost)
        low = middle;
      else
        high = middle - 1;
    }
    const i32 unit = shape_.unit_cost(table_.tile_rows[low]);
    const i32 tile_cost = shape_.k_stages * unit;
    const i64 offset = cost - table_.cost_before[low];
    const i64 tile = quotient(offset, tile_cost);
    const i32 k = static_cast<i32>(offset - tile * tile_cost) / unit;
    return rounded({low, static_cast<i32>(tile), k});
  }

  // Ranges after `range` whose first piece lies in the tile that `range` began and did not finish;
  // the first `count` of them are known.
  i32 contributors_after(i32 range, const Place& tile_start, i32 count = 0) const {
    const Place tile_end = next_tile(tile_start);
    while (range + 1 + count < cut_.ranges && is_before(start_of(range + 1 + count), tile_end))
      ++count;
    return count;
  }

 private:
  i64 cost_before(i32 range) const {
    if (cut_.waves != nullptr) return cut_.waves->dealt_cost + cut_.waves->share_before[range];
    if (cut_.taken == 0) return quotient(table_.total_cost * range, cut_.ranges);
    const i32 heads = cut_.ranges - cut_.taken;
    if (range <= heads) return quotient(cut_.head_cost * range, heads);
    return cut_.head_cost +
           quotient((table_.total_cost - cut_.head_cost) * (range - heads), cut_.taken);
  }

  Place rounded(Place place) const {
    if (cut_.whole_tiles) {
      if (2 * place.k >= shape_.k_stages) return next_tile(place);
      return {place.segment, place.tile, 0};
    }
    if (place.k < shape_.min_piece) return {place.segment, place.tile, 0};
    if (place.k > shape_.k_stages - shape_.min_piece) return next_tile(place);
    return place;
  }

  const SegmentTable& table_;
  WorkShape shape_;
  Cut cut_;
};

}  // namespace chord::device
