// SwiGLU and combine: from arguments to the parameter structs and blocks, and what is refused.
#include <functional>

#include "tests/layer/support.h"

namespace chord::layer {
namespace {

constexpr std::int64_t kTooManyRows = std::int64_t{1} << 31;

RowFilter good_filter() { return {at<std::int32_t>(0x7004), at<std::int32_t>(0x8004), 48}; }

SwigluArguments good_swiglu() {
  return {.gate_up = at<void>(0x1010),
          .output = at<void>(0x2010),
          .rows = 10,
          .columns = 248,
          .filter = good_filter()};
}

CombineArguments good_combine() {
  return {.rows = at<void>(0x1010),
          .weights = at<float>(0x3004),
          .output = at<void>(0x2010),
          .tokens = 10,
          .slots = 9,
          .columns = 248,
          .filter = good_filter()};
}

void swiglu_refused(const std::function<void(SwigluArguments&)>& change, const std::string& found,
                    const std::string& help) {
  SwigluArguments arguments = good_swiglu();
  change(arguments);
  expect_refused<abi::SwigluParams>(arguments, {"launch of swiglu", found, help});
}

void combine_refused(const std::function<void(CombineArguments&)>& change, const std::string& found,
                     const std::string& help) {
  CombineArguments arguments = good_combine();
  change(arguments);
  expect_refused<abi::CombineParams>(arguments, {"launch of combine", found, help});
}

// Both have the same rule for filters.
void both_refused(const std::function<void(RowFilter&)>& change, const std::string& found,
                  const std::string& help) {
  swiglu_refused([&](auto& a) { change(a.filter); }, found, help);
  combine_refused([&](auto& a) { change(a.filter); }, found, help);
}

TEST(SwigluParams, HoldEveryArgument) {
  abi::SwigluParams p{};
  const Result<unsigned> blocks = fill_params(good_swiglu(), p);
  ASSERT_TRUE(blocks.ok()) << blocks.error().message();
  EXPECT_EQ(*blocks, 2u);  // 310 pieces of 8 columns, 256 each
  EXPECT_EQ(p.gate_up, at<void>(0x1010));
  EXPECT_EQ(p.output, at<void>(0x2010));
  EXPECT_EQ(p.rows, 10);
  EXPECT_EQ(p.columns, 248);
  EXPECT_EQ(p.filter.ids, at<std::int32_t>(0x7004));
  EXPECT_EQ(p.filter.expert_map, at<std::int32_t>(0x8004));
  EXPECT_EQ(p.filter.experts, 48);
}

TEST(CombineParams, HoldEveryArgument) {
  abi::CombineParams p{};
  const Result<unsigned> blocks = fill_params(good_combine(), p);
  ASSERT_TRUE(blocks.ok()) << blocks.error().message();
  EXPECT_EQ(*blocks, 2u);
  EXPECT_EQ(p.rows, at<void>(0x1010));
  EXPECT_EQ(p.weights, at<float>(0x3004));
  EXPECT_EQ(p.output, at<void>(0x2010));
  EXPECT_EQ(p.tokens, 10);
  EXPECT_EQ(p.slots, 9);
  EXPECT_EQ(p.columns, 248);
  EXPECT_EQ(p.filter.ids, at<std::int32_t>(0x7004));
  EXPECT_EQ(p.filter.expert_map, at<std::int32_t>(0x8004));
  EXPECT_EQ(p.filter.experts, 48);
}

TEST(RowParams, OfNoRowsNeedNoMemory) {
  EXPECT_EQ(blocks_of<abi::SwigluParams>(SwigluArguments{.columns = 8}), 0);
  EXPECT_EQ(blocks_of<abi::CombineParams>(CombineArguments{.slots = 1, .columns = 8}), 0);
}

TEST(RowParams, WithoutFilterAndWeightsKeepNulls) {
  SwigluArguments swiglu = good_swiglu();
  swiglu.filter = {};
  abi::SwigluParams s{};
  ASSERT_TRUE(fill_params(swiglu, s).ok());
  EXPECT_EQ(s.filter.ids, nullptr);
  CombineArguments combine = good_combine();
  combine.filter = {};
  combine.weights = nullptr;
  abi::CombineParams c{};
  ASSERT_TRUE(fill_params(combine, c).ok());
  EXPECT_EQ(c.filter.ids, nullptr);
  EXPECT_EQ(c.weights, nullptr);
}

TEST(SwigluParams, OutOfRangeAreRefused) {
  swiglu_refused([](auto& a) { a.rows = -1; }, "rows is -1", "0 to 2147483647");
  swiglu_refused([](auto& a) { a.rows = kTooManyRows; }, "rows is 2147483648", "0 to 2147483647");
  swiglu_refused([](auto& a) { a.columns = 0; }, "columns is 0", "8 to 1073741823");
  swiglu_refused([](auto& a) { a.columns = 1 << 30; }, "columns is 1073741824", "8 to 1073741823");
  swiglu_refused([](auto& a) { a.columns = 252; }, "columns is 252", "a multiple of 8");
}

TEST(CombineParams, OutOfRangeAreRefused) {
  combine_refused([](auto& a) { a.tokens = -1; }, "tokens is -1", "0 to 2147483647");
  combine_refused([](auto& a) { a.tokens = kTooManyRows; }, "tokens is 2147483648",
                  "0 to 2147483647");
  combine_refused([](auto& a) { a.slots = 0; }, "slots is 0", "1 to 64");
  combine_refused([](auto& a) { a.slots = 65; }, "slots is 65", "1 to 64");
  combine_refused([](auto& a) { a.columns = 0; }, "columns is 0", "8 to 2147483647");
  combine_refused([](auto& a) { a.columns = 252; }, "columns is 252", "a multiple of 8");
}

// 2^31 pieces of 8 columns are one too many for the kernels' index.
TEST(RowParams, TooManyPiecesAreRefused) {
  SwigluArguments swiglu = good_swiglu();
  swiglu.rows = 0x7fffffff;
  swiglu.columns = 8;
  EXPECT_EQ(blocks_of<abi::SwigluParams>(swiglu), 1 << 23);
  const char* const help = "rows * columns below 2^34";
  swiglu_refused([](auto& a) { a.rows = 1 << 30, a.columns = 16; }, "1073741824 rows of 16 columns",
                 help);
  combine_refused([](auto& a) { a.tokens = 1 << 20, a.columns = 1 << 14; },
                  "1048576 rows of 16384 columns", help);
}

TEST(RowParams, FiltersThatAreNoneAreRefused) {
  both_refused([](auto& f) { f.ids = nullptr; }, "filter.expert_map without filter.ids",
               "give the id of every row");
  both_refused([](auto& f) { f.experts = 0; }, "filter.experts is 0", "1 to 2147483647");
  both_refused([](auto& f) { f.ids = at<std::int32_t>(0x7002); },
               "filter.ids is at 0x7002, not aligned to 4 bytes", kSubView);
  both_refused([](auto& f) { f.expert_map = at<std::int32_t>(0x8001); },
               "filter.expert_map is at 0x8001, not aligned to 4 bytes", kSubView);
}

TEST(SwigluParams, NullAndMisalignedPointersAreRefused) {
  swiglu_refused([](auto& a) { a.gate_up = nullptr; }, "gate_up is a null pointer", kNoMemory);
  swiglu_refused([](auto& a) { a.output = nullptr; }, "output is a null pointer", kNoMemory);
  swiglu_refused([](auto& a) { a.gate_up = at<void>(0x1008); },
                 "gate_up is at 0x1008, not aligned to 16 bytes", kSubView);
  swiglu_refused([](auto& a) { a.output = at<void>(0x2008); },
                 "output is at 0x2008, not aligned to 16 bytes", kSubView);
}

TEST(CombineParams, NullAndMisalignedPointersAreRefused) {
  combine_refused([](auto& a) { a.rows = nullptr; }, "rows is a null pointer", kNoMemory);
  combine_refused([](auto& a) { a.output = nullptr; }, "output is a null pointer", kNoMemory);
  combine_refused([](auto& a) { a.rows = at<void>(0x1008); },
                  "rows is at 0x1008, not aligned to 16 bytes", kSubView);
  combine_refused([](auto& a) { a.weights = at<float>(0x3002); },
                  "weights is at 0x3002, not aligned to 4 bytes", kSubView);
  combine_refused([](auto& a) { a.output = at<void>(0x2008); },
                  "output is at 0x2008, not aligned to 16 bytes", kSubView);
}

}  // namespace
}  // namespace chord::layer
