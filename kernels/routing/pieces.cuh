// The way of one CTA through the work list: its tiles of the waves, then its range, piece by piece;
// and what a tile is made of. One warp walks, all lanes together.
#pragma once

#include "kernels/routing/rows.cuh"
#include "kernels/routing/work_list.cuh"
#include "kernels/tile/pipeline.cuh"

namespace chord::device {

struct Piece {
  Place at;
  i32 k_begin, k_end;  // units
  i32 range;
  i32 contributors = 0;  // ranges whose partials complete it
};

struct TileRows {
  i64 first;  // position of the tile's first row
  i32 rows;
  i32 column_tile;
};

inline TileRows rows_of_tile(const SegmentTable& table, const Place& at) {
  const u32 tiles = table.tiles[at.segment];
  const i32 tile_rows = table.tile_rows[at.segment];
  const i32 column_tile = tiles == 1 ? at.tile : static_cast<u32>(at.tile) / tiles;
  const i32 skipped = (at.tile - column_tile * static_cast<i32>(tiles)) * tile_rows;
  const i32 left = table.rows[at.segment] - skipped;
  return {table.first[at.segment] + skipped, tile_rows < left ? tile_rows : left, column_tile};
}

inline TileRecord record_of(const Piece& piece, const TileRows& tile, i32 tile_n) {
  TileRecord record;
  record.stages = piece.k_end - piece.k_begin;
  record.steps = (tile.rows + 7) / 8;
  record.first_column = tile.column_tile * tile_n;
  record.is_head = piece.k_begin > 0;
  record.contributors = piece.contributors;
  record.range = piece.range;
  record.first_stage = piece.k_begin;
  return record;
}

// The entries of a tile's rows, read one piece ahead: a dependent load under a saturated memory
// system costs microseconds.
template <Schedule S, Problem P>
class TileEntries {
 public:
  static constexpr i32 kPerLane = (S.tile_m + 31) / 32;

  void prefetch(const GemmParams& p, const SegmentTable& table, const Place& at, i32 lane) {
    const TileRows tile = rows_of_tile(table, at);
#pragma unroll
    for (i32 i = 0; i < kPerLane; ++i) {
      const i32 row = lane + 32 * i;
      entry_[i] = row < tile.rows ? load_entry<P.routing>(p, tile.first + row) : kNoRow;
    }
  }

  // Visit(row, RowPair) for every row of the lane, up to tile_m.
  template <class Visit>
  void for_each_row(const GemmParams& p, const TileRows& tile, i32 expert, i32 lane,
                    const Visit& visit) const {
#pragma unroll
    for (i32 i = 0; i < kPerLane; ++i) {
      const i32 row = lane + 32 * i;
      if (row >= S.tile_m) continue;
      RowPair pair;
      if (row < tile.rows) pair = row_of<P.routing>(p, tile.first + row, entry_[i], expert);
      visit(row, pair);
    }
  }

 private:
  i32 entry_[kPerLane];
};

// One warp, all lanes together. Lane i finds the start of range + i, all at the price of one.
inline CtaWork work_of_cta(const WorkList& list, const Cut& cut, i32 cta, i32 lane) {
  CtaWork work{};
  work.range = cut.ranges - 1 - cta;
  if (work.range < 0) {
    work.range = kNoRange;
    return work;
  }
  work.waves = list.waves();
  const Place start = list.start_of(work.range + lane);
  const auto start_after = [&](i32 ranges) {
    return Place{__shfl_sync(0xffffffffu, start.segment, ranges),
                 __shfl_sync(0xffffffffu, start.tile, ranges),
                 __shfl_sync(0xffffffffu, start.k, ranges)};
  };
  work.first = start_after(0);
  work.end = start_after(1);
  const Place tile_start{work.end.segment, work.end.tile, 0};
  if (work.end.k == 0 || is_before(tile_start, work.first)) return work;
  const Place tile_end = list.next_tile(tile_start);
  const bool is_in_tile = lane > 0 && work.range + lane < cut.ranges && is_before(start, tile_end);
  const i32 known = __popc(__ballot_sync(0xffffffffu, is_in_tile));
  work.contributors = known < 31 ? known : list.contributors_after(work.range, tile_start, known);
  return work;
}

// Calls begin(first place) if there is anything to do, then visit(piece, has_next, next place) for
// every piece.
template <bool HasWaves, class Begin, class Visit>
inline void walk_pieces(const WorkList& list, const CtaWork& work, i32 cta, i32 ctas,
                        const Begin& begin, const Visit& visit) {
  if (work.range == kNoRange) return;
  Place at = work.first;
  if constexpr (HasWaves) {
    if (work.waves > 0) at = list.tiles_after({}, cta);
  }
  if ((HasWaves && work.waves > 0) || is_before(at, work.end)) begin(at);
  if constexpr (HasWaves) {
    for (i32 wave = 1; wave <= work.waves; ++wave) {
      const bool is_last = wave == work.waves;
      const Place next = is_last ? work.first : list.tiles_after(at, ctas);
      visit(Piece{at, 0, list.k_stages(), work.range}, !is_last || is_before(next, work.end), next);
      at = next;
    }
  }
  while (is_before(at, work.end)) {
    const Place next = list.next_tile(at);
    const bool is_cut = is_before(work.end, next);
    const i32 contributors = is_cut && at.k == 0 ? work.contributors : 0;
    visit(Piece{at, at.k, is_cut ? work.end.k : list.k_stages(), work.range, contributors},
          is_before(next, work.end), next);
    at = next;
  }
}

}  // namespace chord::device
