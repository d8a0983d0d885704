// RowOrder::gate_up: which rows lie together, and packing in that order.
#include <gtest/gtest.h>

#include <set>

#include "tests/weights/checkpoint.h"

namespace chord {
namespace {

bool says(const Status& status, const std::string& part) {
  return !status.ok() && status.error().message().find(part) != std::string::npos;
}

Status pack_ordered(const test::Checkpoint& from, CodeSource codes, ScaleSource scales,
                    test::Packed& packed) {
  return pack_weights(from.source(codes, scales), from.shape, packed.weights.data(),
                      packed.scales.data());
}

TEST(RowOrder, PackedAndCheckpointRowsAreInverse) {
  for (const std::int64_t n : {64, 128, 192, 512, 4096})
    for (const RowOrder order : test::kRowOrders) {
      std::set<std::int64_t> rows;
      for (std::int64_t row = 0; row < n; ++row) {
        ASSERT_EQ(abi::packed_row(order, abi::checkpoint_row(order, row, n), n), row) << n;
        ASSERT_EQ(abi::checkpoint_row(order, abi::packed_row(order, row, n), n), row) << n;
        rows.insert(abi::checkpoint_row(order, row, n));
      }
      EXPECT_EQ(static_cast<std::int64_t>(rows.size()), n);
      EXPECT_EQ(*rows.begin(), 0);
      EXPECT_EQ(*rows.rbegin(), n - 1);
    }
}

// By the words of the definition, not by its formulas.
TEST(RowOrder, AStripHoldsEightGateRowsThenTheirUpRows) {
  for (const std::int64_t n : {64, 192}) {
    std::int64_t packed = 0;
    for (std::int64_t first = 0; first < n / 2; first += 8) {
      for (std::int64_t gate = first; gate < first + 8; ++gate)
        ASSERT_EQ(abi::checkpoint_row(RowOrder::gate_up, packed++, n), gate);
      for (std::int64_t gate = first; gate < first + 8; ++gate)
        ASSERT_EQ(abi::checkpoint_row(RowOrder::gate_up, packed++, n), n / 2 + gate);
    }
    EXPECT_EQ(packed, n);
  }
}

TEST(RowOrder, EverySourceGivesTheBytesOfTheMapAndComesBack) {
  for (const RowOrder order : test::kRowOrders)
    for (const std::int64_t n : {64, 192}) {
      const test::Checkpoint from = test::random_checkpoint(2, n, 128, 40 + n, order);
      const test::Packed expected = test::expected_packed(from);
      for (const CodeSource codes : test::kCodeSources)
        for (const ScaleSource scales : test::kScaleSources) {
          test::Packed packed(from.shape);
          ASSERT_TRUE(pack_ordered(from, codes, scales, packed).ok());
          EXPECT_TRUE(packed == expected) << n << ' ' << static_cast<int>(codes);
          std::vector<std::uint8_t> back(from.codes.size(), 0xee);
          std::vector<std::uint16_t> scales_back(from.scales.size(), 0xeeee);
          ASSERT_TRUE(unpack_weights(packed.weights.data(), packed.scales.data(), from.shape,
                                     back.data(), scales_back.data())
                          .ok());
          EXPECT_EQ(back, from.codes);
          EXPECT_EQ(scales_back, from.scales);
        }
    }
}

TEST(RowOrder, GateAndUpRowsAreNotThePlainBytes) {
  const test::Checkpoint plain = test::random_checkpoint(1, 64, 64, 5);
  test::Checkpoint ordered = plain;
  ordered.shape.row_order = RowOrder::gate_up;
  EXPECT_FALSE(test::expected_packed(plain) == test::expected_packed(ordered));
}

TEST(RowOrder, ABadScaleOfAnUpRowIsNamedByItsCheckpointRow) {
  for (const ScaleSource scales : test::kScaleSources) {
    test::Checkpoint from = test::random_checkpoint(2, 128, 128, 6, RowOrder::gate_up);
    from.scales[(1 * 128 + 64 + 13) * 4 + 2] = 0x7fc0;
    from.spell();
    test::Packed packed(from.shape);
    const Status status = pack_ordered(from, CodeSource::words, scales, packed);
    EXPECT_TRUE(says(status, "expert 1, row 77, group 2"));
  }
}

TEST(RowOrder, ABadCodeOfAnUpRowIsNamedByItsCheckpointRow) {
  for (const CodeSource codes : {CodeSource::codes_i32, CodeSource::codes_u8}) {
    test::Checkpoint from = test::random_checkpoint(2, 128, 128, 6, RowOrder::gate_up);
    from.codes[(1 * 128 + 64 + 3) * 128 + 99] = 16;
    from.spell();
    test::Packed packed(from.shape);
    const Status status = pack_ordered(from, codes, ScaleSource::row_major, packed);
    EXPECT_TRUE(says(status, "expert 1, row 67, column 99"));
  }
}

TEST(RowOrder, OfSeveralBadScalesTheFirstInCheckpointOrderIsNamed) {
  test::Checkpoint from = test::random_checkpoint(1, 128, 128, 6, RowOrder::gate_up);
  from.scales[(64 + 0) * 4] = 0x7fc0;  // packed row 8
  from.scales[40 * 4] = 0x7fc0;        // packed row 80
  from.spell();
  test::Packed packed(from.shape);
  const Status status = pack_ordered(from, CodeSource::words, ScaleSource::row_major, packed);
  EXPECT_TRUE(says(status, "expert 0, row 40, group 0"));
}

TEST(RowOrder, OutOfRangeIsRefused) {
  for (const int order : {-1, 2, 99}) {
    const PackedShape shape{
        .experts = 1, .n = 64, .k = 64, .row_order = static_cast<RowOrder>(order)};
    EXPECT_TRUE(says(check_shape(shape), "row order " + std::to_string(order)));
    EXPECT_TRUE(says(check_shape(shape), "plain or gate_up"));
  }
}

}  // namespace
}  // namespace chord
