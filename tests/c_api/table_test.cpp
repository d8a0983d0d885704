// Schedule tables through the C face: the rows of the C++ face, copied with the caller's stride.
#include "tests/c_api/schedule_fields.h"

namespace chord::c_api_test {
namespace {

class TableTest : public CApiTest {
 protected:
  std::vector<chord_table_row_t> rows() {
    std::size_t count = 0;
    EXPECT_SUCCESS(chord_schedule_table(handle_, &descriptor_, nullptr, 0, &count));
    std::vector<chord_table_row_t> rows(count, chord_table_row_init());
    EXPECT_SUCCESS(chord_schedule_table(handle_, &descriptor_, rows.data(), count, &count));
    return rows;
  }

  chord_gemm_descriptor_t descriptor_ = decode();
};

TEST_F(TableTest, CoversEveryRowWithoutAHole) {
  std::int64_t at = 0;
  for (const chord_table_row_t& row : rows()) {
    EXPECT_EQ(row.min_rows, at);
    EXPECT_GT(row.max_rows, row.min_rows);
    at = row.max_rows;
  }
  EXPECT_EQ(at, std::int64_t{1} << 30);
}

TEST_F(TableTest, IsTheOneOfTheCppFace) {
  const auto expected = engine().schedule_table(cpp_decode());
  ASSERT_TRUE(expected.ok());
  const std::vector<chord_table_row_t> rows = this->rows();
  ASSERT_EQ(rows.size(), expected->rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].struct_size, sizeof(chord_table_row_t));
    EXPECT_EQ(rows[i].max_rows, expected->rows[i].max_rows);
    EXPECT_EQ(rows[i].origin, static_cast<int>(expected->rows[i].origin));
    EXPECT_EQ(fields_of(rows[i].kernel), fields_of(expected->rows[i].kernel));
    EXPECT_EQ(fields_of(rows[i].published), fields_of(expected->rows[i].schedule));
  }
}

TEST_F(TableTest, OfRowsOfANewerHeaderHasTheirStride) {
  struct NewerRow {
    chord_table_row_t known = chord_table_row_init();
    std::int64_t added = 0;
  };
  std::size_t count = rows().size();
  std::vector<NewerRow> newer(count);
  newer[0].known.struct_size = sizeof(NewerRow);
  REQUIRE_SUCCESS(chord_schedule_table(handle_, &descriptor_, &newer[0].known, count, &count));
  EXPECT_EQ(newer.back().known.max_rows, std::int64_t{1} << 30);
  EXPECT_EQ(newer.back().known.struct_size, sizeof(NewerRow));
  EXPECT_EQ(newer.back().added, 0);
}

TEST_F(TableTest, ThatDoesNotFitIsRefusedWithItsSize) {
  chord_table_row_t row = chord_table_row_init();
  std::size_t count = 0;
  ASSERT_GT(rows().size(), 1u);
  EXPECT_EQ(chord_schedule_table(handle_, &descriptor_, &row, 1, &count),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(count, rows().size());
  EXPECT_EQ(row.max_rows, 0);
  EXPECT_TRUE(contains(chord_last_error()->message, "`capacity` is 1 rows"));
}

}  // namespace
}  // namespace chord::c_api_test
