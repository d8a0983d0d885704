// Every routing that the contract allows, the awkward ones above all: blocks nobody owns, nothing
// to do, garbage behind the valid prefix, experts in any order, NaN where nobody looks.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int64_t kExperts = 6;
constexpr std::uint16_t kNan = 0x7fc0, kInfinity = 0x7f80;

constexpr abi::Mainloop kMainloops[] = {abi::Mainloop::mma, abi::Mainloop::wgmma,
                                        abi::Mainloop::resident};

KernelSpec spec_of(abi::Mainloop mainloop, Family family) {
  KernelSpec spec{.family = family, .n = 256, .k = 256, .block_m = 16};
  spec.pins.mainloop = mainloop;
  return spec;
}

KernelSpec smallest_spec(abi::Mainloop mainloop) {
  KernelSpec spec{.n = 64, .k = 64};
  spec.pins.mainloop = mainloop;
  return spec;
}

const bool kRegistered = register_kernels([] {
  std::vector<KernelSpec> specs;
  for (const abi::Mainloop mainloop : kMainloops) {
    for (const Family family : kFamilies) specs.push_back(spec_of(mainloop, family));
    specs.push_back(smallest_spec(mainloop));
  }
  return specs;
});

class GpuRouting : public GpuTest, public ::testing::WithParamInterface<abi::Mainloop> {
 protected:
  static KernelSpec spec_of(Family family) { return gpu_test::spec_of(GetParam(), family); }

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    REQUIRE_VALUE(weights_, make_weights(kExperts, spec_of(Family::indexed)));
  }
  void TearDown() override {
    weights_.reset();
    GpuTest::TearDown();
  }

  void expect_right_eager_and_captured(const Routing& routing, const std::string& what) {
    REQUIRE_VALUE(GemmRun run, make_run(spec_of(routing.family), *weights_, routing));
    expect_right(run, what + ", eager");
    REQUIRE_OK(run.poison());
    REQUIRE_VALUE(const bench::Graph graph,
                  bench::Graph::capture(rig(), [&](cuda::CUstream s) { return run.launch(s); }));
    REQUIRE_OK(graph.launch(stream()));
    REQUIRE_OK(rig().stream.synchronize());
    REQUIRE_VALUE(const Comparison comparison, run.compare());
    EXPECT_EQ(comparison.violation(), "") << what << ", captured";
  }

  void expect_right_run(const Routing& routing, const std::string& what) {
    expect_right(spec_of(routing.family), *weights_, routing, what);
  }

  // Rows of activations that no owned row reads.
  static std::vector<std::int64_t> unread_rows(const Routing& routing) {
    std::vector<bool> is_read(routing.source_rows, false);
    for (const bench::OwnedRow& row : routing.owned) is_read[row.source] = true;
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < routing.source_rows; ++row)
      if (!is_read[row]) rows.push_back(row);
    return rows;
  }

  static Status fill_row(GemmRun& run, std::int64_t row, std::uint16_t value) {
    const std::vector<std::uint16_t> values(run.k(), value);
    return run.activations.upload(values.data(), values.size() * 2, row * run.k() * 2);
  }

  // NaN in every unread row must not move one bit of the output.
  void expect_padding_does_not_leak(const Routing& routing, const std::string& what) {
    REQUIRE_VALUE(GemmRun run, make_run(spec_of(routing.family), *weights_, routing));
    REQUIRE_VALUE(const std::vector<std::uint16_t> clean, run.bits());
    const std::vector<std::int64_t> unread = unread_rows(routing);
    ASSERT_FALSE(unread.empty()) << what;
    for (const std::int64_t row : unread) REQUIRE_OK(fill_row(run, row, kNan));
    REQUIRE_VALUE(const std::vector<std::uint16_t> with_nan, run.bits());
    EXPECT_TRUE(clean == with_nan) << what;
    expect_right(run, what);
  }

  std::optional<Weights> weights_;
};

// Token choices of which two thirds belong to experts of other GPUs.
std::vector<std::int32_t> mostly_foreign() {
  std::vector<std::int32_t> chosen = bench::random_top_k(48, kExperts * 3, 4);
  for (std::int32_t& expert : chosen)
    if (expert >= kExperts) expert = -1;
  return chosen;
}

TEST_P(GpuRouting, RowsPerExpertOneToSeventeen) {
  for (std::int64_t rows = 1; rows <= 17; ++rows)
    for (const Family family : kFamilies)
      expect_right_run(routing_of(spec_of(family), std::vector<std::int64_t>(kExperts, rows)),
                       fmt::format("{} {} rows", name(family), rows));
}

TEST_P(GpuRouting, RaggedOffsetsOfBothWidths) {
  for (const auto spelling :
       {abi::ContiguousSpelling::offsets32, abi::ContiguousSpelling::offsets64})
    for (const std::vector<std::int64_t>& counts :
         std::vector<std::vector<std::int64_t>>{{1, 0, 7, 130, 0, 33}, {0, 0, 0, 0, 0, 1}})
      expect_right_run(bench::ragged_rows(counts, spelling, 5),
                       fmt::format("spelling {}", static_cast<int>(spelling)));
}

TEST_P(GpuRouting, PaddedRowsOfUnevenExperts) {
  expect_right_run(bench::padded_rows({1, 0, 128, 129, 300, 17}), "m_indices");
}

TEST_P(GpuRouting, MaskedCountsAreClamped) {
  Routing routing = bench::masked({5, 0, 24, 1, 9, 24}, 24);
  routing.masked_m[1] = -3;
  routing.masked_m[2] = 25;
  routing.masked_m[5] = 0x7fffffff;
  expect_right_run(routing, "masked beyond max_m and below 0");
}

TEST_P(GpuRouting, ForeignBlocksInsideTheValidPrefix) {
  const Routing routing = bench::indexed(mostly_foreign(), kExperts, 4, 16);
  ASSERT_EQ(routing.expert_ids.front(), -1);
  expect_right_eager_and_captured(routing, "experts of other GPUs");
}

TEST_P(GpuRouting, SevenOfEightBlocksForeign) {
  std::vector<bench::Block> blocks;
  for (int block = 0; block < 64; ++block) {
    const std::int32_t expert = block % 8 == 3 ? block / 8 % kExperts : block % 8 == 5 ? 1000 : -1;
    bench::Block made{expert, {}};
    for (int i = 0; i < 10; ++i) made.ids.push_back(block * 10 + i);
    blocks.push_back(made);
  }
  expect_right_eager_and_captured(bench::indexed_blocks(blocks, kExperts, 640, 1, 16),
                                  "7/8 of the blocks are nobody's");
}

TEST_P(GpuRouting, NothingToDo) {
  Routing empty = bench::indexed_blocks({}, kExperts, 32, 1, 16);
  bench::add_garbage_tail(empty, 4);
  expect_right_eager_and_captured(empty, "num_tokens_padded 0");
  expect_right_eager_and_captured(
      bench::indexed(std::vector<std::int32_t>(40, -1), kExperts, 1, 16), "all blocks foreign");
  Routing all_padding = bench::padded_rows({1, 1});
  std::fill(all_padding.groups32.begin(), all_padding.groups32.end(), -1);
  all_padding.owned.clear();
  expect_right_eager_and_captured(all_padding, "all rows -1");
  const std::vector<std::int64_t> none(kExperts, 0);
  expect_right_eager_and_captured(bench::padded_rows(none), "zero rows");
  expect_right_eager_and_captured(bench::ragged_rows(none, abi::ContiguousSpelling::offsets32, 3),
                                  "empty experts");
  expect_right_eager_and_captured(bench::masked(none, 8), "masked_m all 0");
}

TEST_P(GpuRouting, GarbageBehindTheValidPrefixDoesNotMatter) {
  Routing routing = bench::indexed(bench::random_top_k(30, kExperts, 2), kExperts, 2, 16);
  bench::add_garbage_tail(routing, 9);
  expect_right_eager_and_captured(routing, "capacity tail");
}

TEST_P(GpuRouting, BlocksOfOneExpertInSeveralPlaces) {
  std::vector<bench::Block> blocks;
  for (std::int32_t block = 0; block < 40; ++block)
    blocks.push_back({(block * 5) % static_cast<std::int32_t>(kExperts),
                      {block * 4, block * 4 + 1, block * 4 + 2, block * 4 + 3}});
  expect_right_run(bench::indexed_blocks(blocks, kExperts, 160, 2, 16), "unsorted blocks");
}

TEST_P(GpuRouting, MoreRunsOfBlocksThanOneWindow) {
  const KernelSpec spec = smallest_spec(GetParam());
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, spec));
  for (const int count : {511, 512, 513, 700, 1500}) {
    std::vector<bench::Block> blocks;
    for (std::int32_t block = 0; block < count; ++block)
      blocks.push_back({block % 2 == 0 ? block % 3 : 3 + block % 3, {2 * block, 2 * block + 1}});
    expect_right(spec, weights, bench::indexed_blocks(blocks, kExperts, 2 * count, 1, 8),
                 fmt::format("{} runs", count));
  }
}

TEST_P(GpuRouting, NanInRowsNobodyReadsDoesNotLeak) {
  expect_padding_does_not_leak(bench::masked({1, 0, 13, 5, 16, 9}, 16), "masked");
  expect_padding_does_not_leak(bench::padded_rows({1, 0, 13, 5, 16, 9}), "m_indices");
  expect_padding_does_not_leak(
      bench::ragged_rows({1, 0, 13, 5, 16, 9}, abi::ContiguousSpelling::offsets64, 20), "offsets");
  std::vector<std::int32_t> chosen = bench::random_top_k(60, kExperts, 1);
  for (std::size_t id = 0; id < chosen.size(); id += 3) chosen[id] = -1;
  Routing indexed = bench::indexed(chosen, kExperts, 1, 16);
  bench::add_garbage_tail(indexed, 5);
  expect_padding_does_not_leak(indexed, "indexed");
}

TEST_P(GpuRouting, NanAndInfinityReachOnlyTheirRow) {
  for (const Family family : kFamilies) {
    const Routing routing = routing_of(spec_of(family), {9, 3, 0, 17, 1, 8});
    REQUIRE_VALUE(GemmRun run, make_run(spec_of(family), *weights_, routing));
    REQUIRE_VALUE(const std::vector<std::uint16_t> clean, run.bits());
    const bench::OwnedRow victim = routing.owned[4];
    for (const std::uint16_t value : {kNan, kInfinity}) {
      REQUIRE_OK(run.activations.upload(&value, 2, (victim.source * run.k() + 100) * 2));
      REQUIRE_VALUE(const std::vector<std::uint16_t> found, run.bits());
      for (std::int64_t at = 0; at < static_cast<std::int64_t>(found.size()); ++at) {
        const bool is_finite = (found[at] & 0x7f80) != 0x7f80;
        if (at / run.n() != victim.output) {
          ASSERT_EQ(found[at], clean[at]) << name(family) << " row " << at / run.n();
        } else {
          ASSERT_FALSE(is_finite) << name(family) << " column " << at % run.n();
        }
      }
      if (value == kNan) expect_right(run, name(family));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mainloops, GpuRouting, ::testing::ValuesIn(kMainloops),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace chord::gpu_test
