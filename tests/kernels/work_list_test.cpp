// The work list walked on the CPU as the CTAs walk it: every unit once, every partial awaited once.
#include "kernels/routing/work_list.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace chord::device {
namespace {

std::unique_ptr<SegmentTable> table_of(const std::vector<int>& rows, const WorkShape& shape) {
  auto table = std::make_unique<SegmentTable>();
  table->count = static_cast<i32>(rows.size());
  table->total_cost = 0;
  table->max_rows = 0;
  table->min_rows = 0x7fffffff;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table->rows[i] = rows[i];
    table->expert[i] = static_cast<i32>(i);
    table->cost_before[i] = table->total_cost;
    const Tiling tiling = shape.tiling(rows[i]);
    table->tiles[i] = tiling.count;
    table->tile_rows[i] = tiling.rows;
    table->total_cost += shape.cost_of(tiling);
    table->max_rows = std::max(table->max_rows, rows[i]);
    if (rows[i] > 0) table->min_rows = std::min(table->min_rows, rows[i]);
  }
  return table;
}

// What one launch does: units by (segment, tile, k) and who waits for whom.
struct Walk {
  std::vector<std::tuple<int, int, int>> units;  // in the order of the list
  std::map<int, int> partials;  // stored: range -> tile owner's range, filled by the owner
  std::vector<i64> cost_of_range;
  std::string fault;
};

void walk_range(const SegmentTable& table, const WorkShape& shape, const Cut& cut, i32 range,
                Walk& walk, std::set<int>& stored, std::map<int, std::vector<int>>& awaited) {
  const WorkList list(table, shape, cut);
  Place at = list.start_of(range);
  const Place end = list.start_of(range + 1);
  i64 cost = 0;
  while (is_before(at, end)) {
    const Place next = list.next_tile(at);
    const bool is_cut = is_before(end, next);
    const i32 k_end = is_cut ? end.k : shape.k_stages;
    if (k_end <= at.k) walk.fault = "an empty piece";
    for (i32 k = at.k; k < k_end; ++k) walk.units.emplace_back(at.segment, at.tile, k);
    cost +=
        static_cast<i64>(k_end - at.k) * shape.unit_cost(shape.tiling(table.rows[at.segment]).rows);
    if (at.k > 0 && !stored.insert(range).second) walk.fault = "two partials of one range";
    if (at.k == 0 && is_cut)
      for (i32 i = 1; i <= list.contributors_after(range, at); ++i)
        awaited[range + i].push_back(range);
    at = next;
  }
  walk.cost_of_range.push_back(cost);
}

WorkShape with_split(WorkShape shape, abi::Split split) {
  shape.schedule.split = split;
  return shape;
}

// What the planning warps of a wgmma kernel make, one CTA after the other.
std::unique_ptr<WaveTable> waves_of(const SegmentTable& table, const WorkShape& shape, int ctas) {
  auto waves = std::make_unique<WaveTable>();
  std::vector<i64> tile_costs;
  for (i32 segment = 0; segment < table.count; ++segment)
    for (i32 tile = 0; tile < table.tiles[segment] * shape.column_tiles; ++tile)
      tile_costs.push_back(static_cast<i64>(shape.k_stages) *
                           shape.unit_cost(table.tile_rows[segment]));
  waves->tiles = static_cast<i32>(tile_costs.size());
  waves->waves = std::max(0, waves->tiles / ctas - 1);
  std::vector<i64> dealt(ctas, 0);
  for (i32 tile = 0; tile < waves->waves * ctas; ++tile) {
    dealt[tile % ctas] += tile_costs[tile];
    waves->dealt_cost += tile_costs[tile];
  }
  i64 lacking = 0;
  std::vector<i64> lack(ctas);
  for (int cta = 0; cta < ctas; ++cta)
    lacking += lack[cta] = std::max<i64>(0, table.total_cost / ctas - dealt[cta]);
  const i64 rest = table.total_cost - waves->dealt_cost;
  i64 before = 0;
  for (int range = 0; range < ctas; ++range) {
    waves->share_before[range] = lacking == 0 ? 0 : before * rest / lacking;
    before += lack[ctas - 1 - range];
  }
  return waves;
}

void walk_waves(const WorkList& list, const SegmentTable& table, const WorkShape& shape, int ctas,
                Walk& walk) {
  for (int cta = 0; cta < ctas; ++cta) {
    Place at = list.tiles_after({}, cta);
    for (i32 wave = 0; wave < list.waves(); ++wave) {
      if (at.segment >= table.count) walk.fault = "a tile behind the list";
      for (i32 k = 0; k < shape.k_stages; ++k) walk.units.emplace_back(at.segment, at.tile, k);
      at = list.tiles_after(at, ctas);
    }
  }
  std::sort(walk.units.begin(), walk.units.end());
}

void expect_complete(const std::vector<int>& rows, const WorkShape& any_split, abi::Split split,
                     int ctas) {
  const WorkShape shape = with_split(any_split, split);
  const auto table = table_of(rows, shape);
  if (table->total_cost == 0) return;
  const auto waves = waves_of(*table, shape, ctas);
  const bool deals =
      shape.schedule.mainloop == abi::Mainloop::wgmma && split == abi::Split::automatic;
  const Cut cut = cut_of(*table, shape, ctas, true, deals ? waves.get() : nullptr);
  ASSERT_GE(cut.ranges, 1);
  ASSERT_LE(cut.ranges - cut.taken, ctas);
  Walk walk;
  walk_waves(WorkList(*table, shape, cut), *table, shape, ctas, walk);
  std::set<int> stored;
  std::map<int, std::vector<int>> awaited;
  for (i32 range = 0; range < cut.ranges; ++range)
    walk_range(*table, shape, cut, range, walk, stored, awaited);
  ASSERT_EQ(walk.fault, "");
  std::size_t want = 0;
  for (const int r : rows)
    want += static_cast<std::size_t>(shape.tiling(r).count) * shape.column_tiles * shape.k_stages;
  ASSERT_EQ(walk.units.size(), want);
  ASSERT_TRUE(std::is_sorted(walk.units.begin(), walk.units.end()));
  ASSERT_EQ(std::adjacent_find(walk.units.begin(), walk.units.end()), walk.units.end());
  if (abi::is_resident(shape.schedule)) return;  // every piece is complete
  ASSERT_EQ(awaited.size(), stored.size()) << "a partial nobody adds, or one that never comes";
  for (const auto& [range, owners] : awaited) {
    ASSERT_TRUE(stored.contains(range));
    ASSERT_EQ(owners.size(), 1u);
    ASSERT_LT(owners[0], range) << "the owner waits for a later range, that is an earlier CTA";
  }
}

TEST(Tiling, TilesCoverTheRowsWithoutAnEmptyOne) {
  for (const int tile_m : {8, 16, 24, 32, 40, 48, 56, 64}) {
    for (int rows = 1; rows <= 3000; ++rows) {
      const Tiling tiling = tiling_of(rows, tile_m);
      ASSERT_LE(tiling.rows, tile_m);
      ASSERT_EQ(tiling.rows % 8, 0);
      ASSERT_GE(static_cast<i64>(tiling.count) * tiling.rows, rows);
      ASSERT_LT(static_cast<i64>(tiling.count - 1) * tiling.rows, rows) << rows << " " << tile_m;
    }
  }
  EXPECT_EQ(tiling_of(0, 16).count, 0);
}

TEST(WorkList, EveryUnitIsVisitedOnceForRandomRoutings) {
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    std::vector<int> rows(1 + random() % 60);
    const int most = 1 << (random() % 8);
    for (int& r : rows) r = static_cast<int>(random() % (most + 1));
    const int tile_m = 8 * (1 + static_cast<int>(random() % 8));
    const Schedule schedule{.mainloop = round % 2 ? abi::Mainloop::wgmma : abi::Mainloop::mma,
                            .tile_m = tile_m};
    const WorkShape shape{schedule, 1 + static_cast<i32>(random() % 16),
                          1 + static_cast<i32>(random() % 60), 2};
    const int ctas = 1 + static_cast<int>(random() % 160);
    for (const abi::Split split :
         {abi::Split::even, abi::Split::whole_tiles, abi::Split::automatic})
      expect_complete(rows, shape, split, ctas);
    if (HasFatalFailure()) {
      ADD_FAILURE() << "round " << round;
      return;
    }
  }
}

TEST(WorkList, EveryUnitIsVisitedOnceForKimiShapes) {
  const Schedule decode{};
  const Schedule prefill{
      .mainloop = abi::Mainloop::wgmma, .tile_m = 32, .tile_n = 256, .widths = 3};
  for (const Schedule& schedule : {decode, prefill})
    for (const Problem& problem : {Problem{4096, 7168}, Problem{7168, 2048}, Problem{512, 7168},
                                   Problem{7168, 256}, Problem{64, 64}, Problem{192, 320}}) {
      const WorkShape shape = WorkShape::of(schedule, problem);
      for (const int experts : {1, 12, 24, 48, 49, 96, 384, 385}) {
        for (const int rows : {1, 8, 17, 70}) {
          for (const int ctas : {1, 132, 147})
            expect_complete(std::vector<int>(experts, rows), shape, abi::Split::automatic, ctas);
        }
      }
      if (HasFatalFailure()) return;
    }
}

// A tile has all columns and is cut along them; nothing is ever added up.
TEST(WorkList, EveryPanelIsVisitedOnce) {
  std::mt19937 random(11);
  for (const Schedule& schedule : {Schedule{.mainloop = abi::Mainloop::resident,
                                  .tile_m = 48,
                                  .tile_n = 128,
                                  .widths = 4,
                                  .slices_per_stage = 4,
                                  .stages = 6},
                                   Schedule{.mainloop = abi::Mainloop::resident,
                                   .tile_m = 208,
                                   .tile_n = 64,
                                   .widths = 3,
                                   .width_step = 16,
                                   .slices_per_stage = 4,
                                   .stages = 8}}) {
    ASSERT_TRUE(abi::is_well_formed(schedule));
    for (int round = 0; round < 200; ++round) {
      const WorkShape shape =
          WorkShape::of(schedule, Problem{64 * (1 + static_cast<i32>(random() % 112)), 256});
      ASSERT_EQ(shape.column_tiles, 1);
      std::vector<int> rows(1 + random() % 385);
      const int most = 1 << (random() % 10);
      for (int& r : rows) r = static_cast<int>(random() % (most + 1));
      for (const abi::Split split :
           {abi::Split::even, abi::Split::whole_tiles, abi::Split::automatic})
        expect_complete(rows, shape, split, 1 + static_cast<int>(random() % 160));
      if (HasFatalFailure()) {
        ADD_FAILURE() << "round " << round;
        return;
      }
    }
  }
}

// Enough panels, and rows are brought ahead: the last tenth is left to whoever is free.
TEST(WorkList, TheLastOfManyPanelsAreTakenByWhoeverIsFree) {
  const Schedule schedule{.mainloop = abi::Mainloop::resident,
                          .tile_m = 48,
                          .tile_n = 128,
                          .widths = 4,
                          .slices_per_stage = 4,
                          .stages = 6};
  const WorkShape shape = WorkShape::of(schedule, Problem{7168, 256});
  const auto many = table_of(std::vector<int>(384, 21), shape);
  const Cut cut = cut_of(*many, shape, 132, true);
  EXPECT_EQ(cut.taken, 132 * kTakenPerCta);
  EXPECT_EQ(cut.ranges, 132 + cut.taken);
  EXPECT_NEAR(static_cast<double>(cut.head_cost) / static_cast<double>(many->total_cost),
              1 - kTakenPercent / 100.0, 1e-3);
  EXPECT_EQ(cut_of(*many, shape, 132, false).taken, 0) << "another window follows";
  EXPECT_EQ(cut_of(*many, with_split(shape, abi::Split::even), 132, true).taken, 0);
  const auto few = table_of(std::vector<int>(12, 21), shape);
  EXPECT_EQ(cut_of(*few, shape, 132, true).taken, 0);
}

TEST(WorkList, OneRangeHasAtMostTheShareOfTheDearestTileMore) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{4096, 7168});
  std::vector<int> rows;
  for (int e = 0; e < 48; ++e) rows.push_back(3 + e % 12);
  const auto table = table_of(rows, shape);
  const Cut cut = cut_of(*table, with_split(shape, abi::Split::even), 132, true);
  ASSERT_EQ(cut.ranges, 132);
  Walk walk;
  std::set<int> stored;
  std::map<int, std::vector<int>> awaited;
  for (i32 range = 0; range < cut.ranges; ++range)
    walk_range(*table, shape, cut, range, walk, stored, awaited);
  const i64 share = table->total_cost / cut.ranges;
  for (const i64 cost : walk.cost_of_range)
    EXPECT_LT(std::abs(cost - share), 2 * (shape.min_piece + 1) * shape.unit_cost(16));
}

TEST(Cut, WholeTilesAreChosenWhenEveryExpertHasAtMostEightOrExactlySixteenRows) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{4096, 7168});
  const auto whole = [&](std::vector<int> rows) {
    const auto table = table_of(rows, shape);
    return cut_of(*table, shape, 132, true).whole_tiles;
  };
  EXPECT_TRUE(whole(std::vector<int>(48, 8)));
  EXPECT_TRUE(whole(std::vector<int>(48, 16)));
  EXPECT_TRUE(whole(std::vector<int>(47, 8))) << "95 % of three waves";
  EXPECT_FALSE(whole(std::vector<int>(48, 9)));
  std::vector<int> mixed(48, 8);
  mixed[3] = 9;
  EXPECT_FALSE(whole(mixed));
  EXPECT_FALSE(whole({1})) << "8 tiles on 132 CTAs: most of the GPU would idle";
}

TEST(Cut, AWindowOfManyIsNeverSplit) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{4096, 7168});
  const auto table = table_of(std::vector<int>(48, 12), shape);
  EXPECT_TRUE(cut_of(*table, with_split(shape, abi::Split::even), 132, false).whole_tiles);
}

TEST(Cut, BehindWavesEveryCtaHasTheSameCost) {
  const Schedule prefill{
      .mainloop = abi::Mainloop::wgmma, .tile_m = 104, .tile_n = 256, .widths = 4};
  const WorkShape shape = WorkShape::of(prefill, Problem{4096, 7168});
  std::mt19937 random(5);
  std::vector<int> rows(48);
  for (int& r : rows) r = 60 + static_cast<int>(random() % 60);
  const auto table = table_of(rows, shape);
  const auto waves = waves_of(*table, shape, 132);
  ASSERT_GE(waves->waves, 2);
  const Cut cut = cut_of(*table, shape, 132, true, waves.get());
  Walk walk;
  const WorkList list(*table, shape, cut);
  std::set<int> stored;
  std::map<int, std::vector<int>> awaited;
  const i64 dearest = shape.unit_cost(prefill.tile_m);
  for (int cta = 0; cta < 132; ++cta) {
    i64 cost = 0;
    Place at = list.tiles_after({}, cta);
    for (i32 wave = 0; wave < waves->waves; ++wave, at = list.tiles_after(at, 132))
      cost += shape.k_stages * shape.unit_cost(table->tile_rows[at.segment]);
    walk_range(*table, shape, cut, 131 - cta, walk, stored, awaited);
    cost += walk.cost_of_range.back();
    EXPECT_NEAR(cost, table->total_cost / 132, 2 * (shape.min_piece + 1) * dearest) << cta;
  }
}

TEST(WorkList, CostsOfTheLargestRoutingDoNotOverflow) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{7168, 7168});
  const auto table = table_of({1 << 30, 1 << 29}, shape);
  const Cut cut = cut_of(*table, with_split(shape, abi::Split::even), 148, true);
  const WorkList list(*table, shape, cut);
  Place previous = list.start_of(0);
  for (i32 range = 1; range <= cut.ranges; ++range) {
    const Place at = list.start_of(range);
    ASSERT_TRUE(is_before(previous, at));
    previous = at;
  }
}

}  // namespace
}  // namespace chord::device
