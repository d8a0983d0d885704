// Routing contracts, one by one, on the host: whose rows, from where, to where.
#include "kernels/routing/rows.cuh"

#include <gtest/gtest.h>

#include <vector>

namespace chord::device {
namespace {

TEST(Rows, IndexedSourceIsIdOverTopKAndOutputIsTheId) {
  GemmParams p{};
  p.num_ids = 160;
  p.top_k = 8;
  const RowPair row = row_of<RoutingKind::indexed>(p, 5, 19, 0);
  EXPECT_EQ(row.source, 2);
  EXPECT_EQ(row.output, 19);
  p.top_k = 1;
  EXPECT_EQ(row_of<RoutingKind::indexed>(p, 5, 19, 0).source, 19);
}

TEST(Rows, IndexedPaddingIsNobodys) {
  GemmParams p{};
  p.num_ids = 160;
  p.top_k = 8;
  for (const i32 entry : {160, 161, 0x7fffffff, -1}) {
    EXPECT_EQ(row_of<RoutingKind::indexed>(p, 0, entry, 0).source, kNoRow);
    EXPECT_EQ(row_of<RoutingKind::indexed>(p, 0, entry, 0).output, kNoRow);
  }
}

TEST(Rows, IndexedPositionsStopAtTheCapacity) {
  GemmParams p{};
  i32 padded = 640;
  p.num_tokens_padded = &padded;
  p.rows = 512;
  EXPECT_EQ(positions<RoutingKind::indexed>(p), 512);
  padded = -8;
  EXPECT_EQ(positions<RoutingKind::indexed>(p), 0);
}

TEST(Rows, MaskedCountsAreClampedToTheSlab) {
  GemmParams p{};
  const std::vector<i32> masked{0, 5, 300, -2};
  p.groups = masked.data();
  p.max_m = 256;
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_masked>(p, 0).rows, 0);
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_masked>(p, 1).first, 256);
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_masked>(p, 1).rows, 5);
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_masked>(p, 2).rows, 256);
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_masked>(p, 3).rows, 0);
}

TEST(Rows, OffsetsOfBothWidthsGiveTheSameRaggedRows) {
  const std::vector<i32> narrow{0, 3, 3, 200};
  const std::vector<i64> wide(narrow.begin(), narrow.end());
  for (int expert = 0; expert < 3; ++expert) {
    GemmParams p{};
    p.rows = 150;
    p.spelling = ContiguousSpelling::offsets32;
    p.groups = narrow.data();
    const ExpertRows a = rows_of_expert<RoutingKind::grouped_contiguous>(p, expert);
    p.spelling = ContiguousSpelling::offsets64;
    p.groups = wide.data();
    const ExpertRows b = rows_of_expert<RoutingKind::grouped_contiguous>(p, expert);
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.rows, b.rows);
  }
  GemmParams p{};
  p.rows = 150;
  p.spelling = ContiguousSpelling::offsets32;
  p.groups = narrow.data();
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_contiguous>(p, 1).rows, 0);
  EXPECT_EQ(rows_of_expert<RoutingKind::grouped_contiguous>(p, 2).rows, 147)
      << "clamped to the tensor";
}

TEST(Rows, PaddingOfMIndicesIsNobodys) {
  GemmParams p{};
  p.spelling = ContiguousSpelling::m_indices;
  EXPECT_EQ(row_of<RoutingKind::grouped_contiguous>(p, 130, -1, 4).output, kNoRow);
  EXPECT_EQ(row_of<RoutingKind::grouped_contiguous>(p, 130, 5, 4).output, kNoRow);
  EXPECT_EQ(row_of<RoutingKind::grouped_contiguous>(p, 130, 4, 4).output, 130);
  EXPECT_EQ(row_of<RoutingKind::grouped_contiguous>(p, 130, 4, 4).source, 130);
}

}  // namespace
}  // namespace chord::device
