// The work list walked on the CPU as the CTAs walk it: every unit once, every partial awaited once.
#include "kernels/routing/work_list.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
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
    const Tiling tiling = tiling_of(rows[i], shape.tile_m);
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
    cost += static_cast<i64>(k_end - at.k) *
            unit_cost(tiling_of(table.rows[at.segment], shape.tile_m).rows);
    if (at.k > 0 && !stored.insert(range).second) walk.fault = "two partials of one range";
    if (at.k == 0 && is_cut)
      for (i32 i = 1; i <= list.contributors_after(range, at); ++i)
        awaited[range + i].push_back(range);
    at = next;
  }
  walk.cost_of_range.push_back(cost);
}

void expect_complete(const std::vector<int>& rows, const WorkShape& shape, abi::Split split,
                     int ctas) {
  const auto table = table_of(rows, shape);
  if (table->total_cost == 0) return;
  const Cut cut = cut_of(*table, shape, split, ctas, true);
  ASSERT_GE(cut.ranges, 1);
  ASSERT_LE(cut.ranges, ctas);
  Walk walk;
  std::set<int> stored;
  std::map<int, std::vector<int>> awaited;
  for (i32 range = 0; range < cut.ranges; ++range)
    walk_range(*table, shape, cut, range, walk, stored, awaited);
  ASSERT_EQ(walk.fault, "");
  std::size_t want = 0;
  for (const int r : rows)
    want += static_cast<std::size_t>(tiling_of(r, shape.tile_m).count) * shape.column_tiles *
            shape.k_stages;
  ASSERT_EQ(walk.units.size(), want);
  ASSERT_TRUE(std::is_sorted(walk.units.begin(), walk.units.end()));
  ASSERT_EQ(std::adjacent_find(walk.units.begin(), walk.units.end()), walk.units.end());
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
    const WorkShape shape{tile_m, 1 + static_cast<i32>(random() % 16),
                          1 + static_cast<i32>(random() % 60)};
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
  for (const Problem& problem : {Problem{4096, 7168}, Problem{7168, 2048}, Problem{512, 7168},
                                 Problem{7168, 256}, Problem{64, 64}, Problem{192, 320}}) {
    const WorkShape shape = WorkShape::of(decode, problem);
    for (const int experts : {1, 12, 24, 48, 49, 96, 384, 385}) {
      for (const int rows : {1, 8, 17, 70}) {
        for (const int ctas : {1, 132, 147})
          expect_complete(std::vector<int>(experts, rows), shape, abi::Split::automatic, ctas);
      }
    }
    if (HasFatalFailure()) return;
  }
}

TEST(WorkList, OneRangeHasAtMostTheShareOfTheDearestTileMore) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{4096, 7168});
  std::vector<int> rows;
  for (int e = 0; e < 48; ++e) rows.push_back(3 + e % 12);
  const auto table = table_of(rows, shape);
  const Cut cut = cut_of(*table, shape, abi::Split::even, 132, true);
  ASSERT_EQ(cut.ranges, 132);
  Walk walk;
  std::set<int> stored;
  std::map<int, std::vector<int>> awaited;
  for (i32 range = 0; range < cut.ranges; ++range)
    walk_range(*table, shape, cut, range, walk, stored, awaited);
  const i64 share = table->total_cost / cut.ranges;
  for (const i64 cost : walk.cost_of_range)
    EXPECT_LT(std::abs(cost - share), 2 * (shape.min_piece + 1) * unit_cost(16));
}

TEST(Cut, WholeTilesAreChosenWhenEveryExpertHasAtMostEightOrExactlySixteenRows) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{4096, 7168});
  const auto whole = [&](std::vector<int> rows) {
    const auto table = table_of(rows, shape);
    return cut_of(*table, shape, abi::Split::automatic, 132, true).whole_tiles;
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
  EXPECT_TRUE(cut_of(*table, shape, abi::Split::even, 132, false).whole_tiles);
}

TEST(WorkList, CostsOfTheLargestRoutingDoNotOverflow) {
  const WorkShape shape = WorkShape::of(Schedule{}, Problem{7168, 7168});
  const auto table = table_of({1 << 30, 1 << 29}, shape);
  const Cut cut = cut_of(*table, shape, abi::Split::even, 148, true);
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
