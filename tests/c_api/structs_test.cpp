// Which struct sizes are taken: the current, known older ones, and larger ones with an empty tail.
#include "src/c_api/structs.h"

#include "tests/c_api/fixture.h"

namespace chord::c_api_test {

// A struct that has grown once.
struct Grown {
  std::size_t struct_size;
  std::int64_t first;
  std::int64_t added;
};

}  // namespace chord::c_api_test

template <>
inline constexpr std::array<std::size_t, 2> chord::c_api::kKnownSizes<chord::c_api_test::Grown>{
    16, sizeof(chord::c_api_test::Grown)};

namespace chord::c_api_test {
namespace {

using c_api::OutStruct;
using c_api::read_struct;

const c_api::Call kReader("chord_test");

// What a program with a newer header would pass.
struct Newer {
  Grown known;
  std::int64_t tail[2];
};

Result<Grown> read(const Newer& from) { return read_struct(kReader, &from.known, "grown"); }

TEST(StructSize, TheCurrentOneIsTaken) {
  const auto value = read({{sizeof(Grown), 5, 6}, {7, 7}});
  ASSERT_TRUE(value.ok()) << value.error().message();
  EXPECT_EQ(value->first, 5);
  EXPECT_EQ(value->added, 6);
}

TEST(StructSize, AnOlderOneIsTakenAndTheRestIsDefault) {
  const auto value = read({{16, 5, 6}, {0, 0}});
  ASSERT_TRUE(value.ok()) << value.error().message();
  EXPECT_EQ(value->first, 5);
  EXPECT_EQ(value->added, 0);
}

TEST(StructSize, AnEmptyTailOfANewerOneIsTaken) {
  const auto value = read({{sizeof(Newer), 5, 6}, {0, 0}});
  ASSERT_TRUE(value.ok()) << value.error().message();
  EXPECT_EQ(value->added, 6);
}

TEST(StructSize, ATailThatSaysSomethingIsRefusedWithTheNumbers) {
  const auto value = read({{sizeof(Newer), 5, 6}, {0, 1}});
  ASSERT_FALSE(value.ok());
  const std::string text = value.error().message();
  EXPECT_TRUE(contains(text, "`grown.struct_size` is 40")) << text;
  EXPECT_TRUE(contains(text, "24 is the size")) << text;
}

TEST(StructSize, WhatNoReleaseHadIsRefusedWithTheNumber) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{23},
                                 c_api::kMostStructBytes + 1, ~std::size_t{0}}) {
    const auto value = read({{size, 5, 6}, {0, 0}});
    ASSERT_FALSE(value.ok()) << size;
    EXPECT_TRUE(contains(value.error().message(), "is " + std::to_string(size)));
  }
}

TEST(StructSize, AnOlderStructIsNotWrittenBehindItsEnd) {
  Grown older{16, 1, -1};
  const auto out = OutStruct<Grown>::check(kReader, &older, "grown");
  ASSERT_TRUE(out.ok());
  out->write({sizeof(Grown), 8, 9});
  EXPECT_EQ(older.struct_size, 16u);
  EXPECT_EQ(older.first, 8);
  EXPECT_EQ(older.added, -1);
}

TEST(StructSize, ANewerStructKeepsItsSizeWhenItIsWritten) {
  Newer newer{{sizeof(Newer), 1, 2}, {0, 0}};
  const auto out = OutStruct<Grown>::check(kReader, &newer.known, "grown");
  ASSERT_TRUE(out.ok());
  out->write({sizeof(Grown), 8, 9});
  EXPECT_EQ(newer.known.struct_size, sizeof(Newer));
  EXPECT_EQ(newer.known.added, 9);
}

// Zeroed structs are what a caller who forgot the initialiser has.
TEST_F(CApiTest, AStructThatWasNotInitialisedIsRefusedByName) {
  chord_gemm_descriptor_t descriptor{};
  OwnedPlan plan;
  EXPECT_EQ(chord_plan_gemm(handle_, &descriptor, plan.out()), CHORD_ERROR_INVALID_ARGUMENT);
  const std::string text = chord_last_error()->message;
  EXPECT_TRUE(contains(text, "argument `descriptor.struct_size` is 0")) << text;
}

// The sizes that programs were compiled with: a change here is a change of the ABI.
TEST(StructSize, IsTheOneOfThisRelease) {
  EXPECT_EQ(sizeof(chord_error_t), 48u);
  EXPECT_EQ(sizeof(chord_options_t), 184u);
  EXPECT_EQ(sizeof(chord_device_t), 88u);
  EXPECT_EQ(sizeof(chord_model_t), 128u);
  EXPECT_EQ(sizeof(chord_layer_descriptor_t), 120u);
  EXPECT_EQ(sizeof(chord_gemm_descriptor_t), 88u);
  EXPECT_EQ(sizeof(chord_published_schedule_t), 64u);
  EXPECT_EQ(sizeof(chord_kernel_schedule_t), 64u);
  EXPECT_EQ(sizeof(chord_plan_info_t), 160u);
  EXPECT_EQ(sizeof(chord_table_row_t), 160u);
  EXPECT_EQ(sizeof(chord_weight_source_t), 32u);
  EXPECT_EQ(sizeof(chord_packed_weight_t), 56u);
  EXPECT_EQ(sizeof(chord_kernel_info_t), 80u);
  EXPECT_EQ(sizeof(chord_gemm_arguments_t), 64u);
  EXPECT_EQ(sizeof(chord_indexed_routing_t), 56u);
  EXPECT_EQ(sizeof(chord_contiguous_routing_t), 32u);
  EXPECT_EQ(sizeof(chord_masked_routing_t), 24u);
  EXPECT_EQ(sizeof(chord_gate_arguments_t), 80u);
  EXPECT_EQ(sizeof(chord_align_arguments_t), 96u);
  EXPECT_EQ(sizeof(chord_swiglu_arguments_t), 64u);
  EXPECT_EQ(sizeof(chord_combine_arguments_t), 72u);
  EXPECT_EQ(sizeof(chord_deployment_t), 104u);
  EXPECT_EQ(sizeof(chord_prewarm_progress_t), 56u);
  EXPECT_EQ(sizeof(chord_prewarm_options_t), 48u);
  EXPECT_EQ(sizeof(chord_report_info_t), 88u);
  EXPECT_EQ(sizeof(chord_missing_t), 32u);
  EXPECT_EQ(sizeof(chord_cache_counters_t), 104u);
}

}  // namespace
}  // namespace chord::c_api_test
