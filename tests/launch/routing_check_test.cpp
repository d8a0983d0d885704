// Checked mode as pure functions over host copies: what breaks a routing contract is refused and
// named, what keeps it passes.
#include "src/launch/routing_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace chord::launch {
namespace {

using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::int64_t>;

constexpr int kBlockM = 4;
constexpr std::int64_t kExperts = 3;
constexpr std::int32_t kPad = 6;  // num_ids: the smallest sentinel

struct Indexed {
  Ids sorted_ids{0, 3, kPad, kPad, 1, kPad, kPad, kPad, 5, 2, 4, kPad};
  Ids expert_ids{0, 1, 2};
  std::int64_t padded = 12;
  std::int64_t capacity = 12;

  Status check() const {
    IndexedRouting routing;
    routing.num_ids = kPad;
    routing.capacity = capacity;
    return check_indexed(sorted_ids, expert_ids, padded, routing, kBlockM, kExperts);
  }
};

void expect_refused(const Status& status, const std::string& names) {
  ASSERT_FALSE(status.ok()) << names;
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(status.error().message().find(names), std::string::npos) << status.error().message();
}

TEST(CheckIndexed, AcceptsWhatTheContractAllows) {
  EXPECT_TRUE(Indexed{}.check().ok());
  Indexed foreign;
  foreign.expert_ids[1] = -1;
  EXPECT_TRUE(foreign.check().ok());
  Indexed large_sentinels;
  large_sentinels.sorted_ids[2] = 0x7fffffff;
  EXPECT_TRUE(large_sentinels.check().ok());
  Indexed nothing;
  nothing.padded = 0;
  EXPECT_TRUE(nothing.check().ok());
}

TEST(CheckIndexed, DoesNotLookBehindTheValidPrefix) {
  Indexed tail;
  tail.padded = 8;
  tail.sorted_ids[8] = -7;
  tail.expert_ids[2] = 99;
  EXPECT_TRUE(tail.check().ok());
}

TEST(CheckIndexed, RefusesACountThatIsNoMultipleOfBlockM) {
  for (const std::int64_t padded : {1, 3, 5, 11, -4}) {
    Indexed routing;
    routing.padded = padded;
    expect_refused(routing.check(), std::to_string(padded));
  }
}

TEST(CheckIndexed, RefusesACountBeyondCapacity) {
  Indexed routing;
  routing.padded = 16;
  expect_refused(routing.check(), "beyond the capacity 12");
}

TEST(CheckIndexed, RefusesARepeatedIdWhereverItIs) {
  Indexed same_block;
  same_block.sorted_ids[1] = 0;
  expect_refused(same_block.check(), "block 0 row 1 repeats id 0");
  Indexed other_block;
  other_block.sorted_ids[4] = 3;
  expect_refused(other_block.check(), "block 1 row 0 repeats id 3");
}

TEST(CheckIndexed, RefusesAValidIdAfterASentinel) {
  Indexed routing;
  std::swap(routing.sorted_ids[4], routing.sorted_ids[6]);
  expect_refused(routing.check(), "block 1 row 2 has id 1 after padding");
}

TEST(CheckIndexed, RefusesNegativeIds) {
  Indexed routing;
  routing.sorted_ids[9] = -1;
  expect_refused(routing.check(), "block 2 row 1 has id -1");
}

TEST(CheckIndexed, RefusesExpertsOutOfRange) {
  for (const std::int32_t expert : {3, -2, 0x7fffffff}) {
    Indexed routing;
    routing.expert_ids[1] = expert;
    expect_refused(routing.check(), "block 1 has expert " + std::to_string(expert));
  }
}

// Rows of experts, each padded to 128.
Ids padded_rows(std::vector<std::pair<int, int>> experts_and_rows) {
  Ids rows;
  for (const auto& [expert, count] : experts_and_rows) {
    const std::size_t end = (rows.size() + count + 127) / 128 * 128;
    rows.insert(rows.end(), count, expert);
    rows.resize(end, -1);
  }
  return rows;
}

TEST(CheckMIndices, AcceptsWhatTheContractAllows) {
  EXPECT_TRUE(check_m_indices(padded_rows({{0, 128}, {2, 1}}), kExperts).ok());
  EXPECT_TRUE(check_m_indices(padded_rows({{1, 300}}), kExperts).ok());
  EXPECT_TRUE(check_m_indices(Ids(256, -1), kExperts).ok());
  EXPECT_TRUE(check_m_indices(Ids{}, kExperts).ok());
}

TEST(CheckMIndices, RefusesAnExpertThatBeginsInsideABlock) {
  Ids rows = padded_rows({{0, 5}, {1, 5}});
  rows[5] = 1;
  expect_refused(check_m_indices(rows, kExperts), "expert 1 begins at row 5");
}

TEST(CheckMIndices, RefusesAnExpertInTwoPlaces) {
  expect_refused(check_m_indices(padded_rows({{0, 5}, {1, 5}, {0, 5}}), kExperts),
                 "expert 0 begins again at row 256");
}

TEST(CheckMIndices, RefusesExpertsOutOfRange) {
  expect_refused(check_m_indices(padded_rows({{3, 5}}), kExperts), "row 0 has expert 3");
  expect_refused(check_m_indices(Ids{-2}, kExperts), "row 0 has expert -2");
}

TEST(CheckOffsets, AcceptsEmptyExpertsAndATail) {
  EXPECT_TRUE(check_offsets(Offsets{0, 0, 5, 5}, 5).ok());
  EXPECT_TRUE(check_offsets(Offsets{0, 1, 2, 3}, 10).ok());
  EXPECT_TRUE(check_offsets(Offsets{0}, 0).ok());
}

TEST(CheckOffsets, RefusesWhatIsNoPartition) {
  expect_refused(check_offsets(Offsets{1, 2}, 5), "offset 0 is 1");
  expect_refused(check_offsets(Offsets{0, 4, 3}, 5), "offset 2 is 3 after 4");
  expect_refused(check_offsets(Offsets{0, 6}, 5), "offset 1 is 6 of 5 rows");
}

TEST(CheckMasked, AcceptsZeroToMaxM) { EXPECT_TRUE(check_masked(Ids{0, 8, 3}, 8).ok()); }

TEST(CheckMasked, RefusesCountsOutOfRange) {
  expect_refused(check_masked(Ids{0, 9, 3}, 8), "expert 1 has 9 rows");
  expect_refused(check_masked(Ids{0, 8, -1}, 8), "expert 2 has -1 rows");
}

}  // namespace
}  // namespace chord::launch
