// Packing through the C face: the bytes of the C++ face, and what is refused.
#include "tests/c_api/fixture.h"
#include "tests/weights/checkpoint.h"

namespace chord::c_api_test {
namespace {

using test::Checkpoint;
using test::Packed;

class WeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    weight_.experts = from_.shape.experts;
    weight_.n = from_.shape.n;
    weight_.k = from_.shape.k;
    point();
  }

  // `vector` may have moved.
  void point() {
    source_.codes = from_.words.data();
    source_.scales = from_.scales.data();
    source_.code_source = CHORD_CODES_WORDS;
    weight_.codes = packed_.weights.data();
    weight_.scales = packed_.scales.data();
  }

  Checkpoint from_ = test::random_checkpoint(2, 128, 192, 3);
  Packed packed_{from_.shape};
  chord_weight_source_t source_ = chord_weight_source_init();
  chord_packed_weight_t weight_ = chord_packed_weight_init();
};

TEST_F(WeightsTest, BytesAreThoseOfTheShape) {
  std::size_t codes = 0, scales = 0;
  REQUIRE_SUCCESS(chord_packed_bytes(&weight_, &codes, &scales));
  EXPECT_EQ(codes, static_cast<std::size_t>(from_.shape.weight_bytes()));
  EXPECT_EQ(scales, static_cast<std::size_t>(from_.shape.scale_bytes()));
}

TEST_F(WeightsTest, AShapeThatCanNotBePackedIsRefusedWithItsNumber) {
  weight_.k = 100;
  std::size_t codes = 0, scales = 0;
  EXPECT_EQ(chord_packed_bytes(&weight_, &codes, &scales), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "100"));
}

TEST_F(WeightsTest, AnotherLayoutVersionIsRefused) {
  weight_.layout_version = 99;
  EXPECT_EQ(chord_pack_host(&source_, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "99"));
}

TEST_F(WeightsTest, EveryFormOfACheckpointPacksToTheSameBytesAsInCpp) {
  const Packed expected = test::expected_packed(from_);
  for (const CodeSource codes : test::kCodeSources)
    for (const ScaleSource scales : test::kScaleSources) {
      const WeightSource cpp = from_.source(codes, scales);
      packed_ = Packed(from_.shape);
      point();
      source_.codes = cpp.codes;
      source_.scales = cpp.scales;
      source_.code_source = static_cast<chord_code_source_t>(codes);
      source_.scale_source = static_cast<chord_scale_source_t>(scales);
      REQUIRE_SUCCESS(chord_pack_host(&source_, &weight_));
      EXPECT_TRUE(packed_ == expected) << static_cast<int>(codes) << static_cast<int>(scales);
    }
}

TEST_F(WeightsTest, GateAndUpRowsAreInterleavedAsInCpp) {
  weight_.row_order = CHORD_ROWS_GATE_UP;
  REQUIRE_SUCCESS(chord_pack_host(&source_, &weight_));
  PackedShape shape = from_.shape;
  shape.row_order = RowOrder::gate_up;
  Packed expected(shape);
  ASSERT_TRUE(pack_weights(from_.source(CodeSource::words, ScaleSource::row_major), shape,
                           expected.weights.data(), expected.scales.data())
                  .ok());
  EXPECT_TRUE(packed_ == expected);
  EXPECT_FALSE(packed_ == test::expected_packed(from_));
}

TEST_F(WeightsTest, AScaleThatCanNotBePackedIsNamed) {
  from_.scales[(128 + 5) * 6 + 2] = 0x7f80;  // infinity
  EXPECT_EQ(chord_pack_host(&source_, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "expert 1, row 5, group 2"))
      << chord_last_error()->message;
}

TEST_F(WeightsTest, AnEnumThatIsNoneIsRefusedByName) {
  set_raw(source_.code_source, 9);
  EXPECT_EQ(chord_pack_host(&source_, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`source.code_source` is 9"));
  set_raw(source_.code_source, CHORD_CODES_WORDS);
  set_raw(weight_.row_order, 2);
  EXPECT_EQ(chord_pack_host(&source_, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`weight.row_order` is 2"));
  weight_.row_order = CHORD_ROWS_PLAIN;
  set_raw(source_.scale_source, 2);
  EXPECT_EQ(chord_pack_host(&source_, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`source.scale_source` is 2"));
}

TEST_F(WeightsTest, ACleanStatusWordIsSuccess) {
  EXPECT_SUCCESS(chord_pack_check(CHORD_PACK_CLEAN, &weight_));
}

TEST_F(WeightsTest, AStatusWordNamesWhatWasRefused) {
  EXPECT_EQ(chord_pack_check(0x7f80, &weight_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(chord_last_error()->message,
            "chord_pack_check: " + check_pack_status(0x7f80, from_.shape).error().message());
}

}  // namespace
}  // namespace chord::c_api_test
