// Tables cover (0, 2^30] and say what solve says: at every edge, one row below and above, and for
// thousands of rows one by one.
#include "heuristics/table.h"

#include <chrono>
#include <cmath>
#include <random>

#include "heuristics/answer.h"
#include "heuristics/sampled_routing.h"
#include "heuristics/validate.h"
#include "tests/heuristics/support.h"
#include "tests/support/sanitizer.h"

namespace chord::heuristics {
namespace {

struct TableCase {
  std::string label;
  GemmDescriptor descriptor;
  Overrides overrides;
};

std::vector<TableCase> table_cases() {
  std::vector<TableCase> cases;
  const auto add = [&](std::string text, GemmDescriptor d, Overrides o = {}) {
    cases.push_back({std::move(text), std::move(d), o});
  };
  for (const std::int64_t experts : {1, 12, 24, 48, 49, 96, 385}) {
    add("prefill gate/up", indexed("h200_prefill_ep8", 4096, 7168, experts, 0));
    add("prefill down", indexed("h200_prefill_ep8", 7168, 2048, experts, 0));
    add("decode", indexed("h200_decode_ep8", 4096, 7168, experts, 0));
    add("masked gate/up", masked(4096, 7168, experts, 0));
    add("masked down", masked(7168, 2048, experts, 0));
    add("contiguous gate/up", contiguous(4096, 7168, experts, 0));
  }
  add("tp8 gate/up", indexed("h200_tp8", 512, 7168, 384, 0));
  add("tp8 down", indexed("h200_tp8", 7168, 256, 384, 0));
  add("blackwell gate/up", indexed("blackwell_decode_ep8", 4096, 7168, 48, 0));
  add("blackwell down", indexed("blackwell_decode_ep8", 7168, 2048, 48, 0));
  add("fallback", indexed("h200_prefill_ep8", 320, 192, 8, 0));
  add("contiguous tiny", contiguous(64, 64, 8, 0));
  add("masked tiny", masked(64, 64, 8, 0));
  for (const int sms : {1, 7, 60, 96, 97, 100, 131, 144, 200}) {
    GemmDescriptor m = masked(7168, 2048, 5, 0);
    GemmDescriptor c = contiguous(512, 64, 5, 0);
    m.num_sms = c.num_sms = sms;
    add("masked on a slice", m);
    add("contiguous on a slice", c);
    add("masked with block_m pinned", m, pin(&Overrides::block_m, 16));
    add("contiguous with block_m pinned", c, pin(&Overrides::block_m, 8));
  }
  add("pinned prefill", indexed("h200_prefill_ep8", 7168, 2048, 48, 0),
      pin(&Overrides::block_m, 64));
  add("pinned stages", masked(4096, 7168, 48, 0), pin(&Overrides::num_stages, 5));
  add("given block_m", [] {
    GemmDescriptor d = masked(7168, 2048, 48, 0);
    d.block_m = 40;
    return d;
  }());
  return cases;
}

Answer answer_at(const TableCase& c, std::int64_t rows) {
  const ProfileSet& profiles = *published_profiles();
  const GemmDescriptor d = *completed(profiles, c.descriptor, RowsField::whole_axis);
  Trace trace(Trace::Keep::nothing);
  const Situation situation{profiles, c.overrides, Policy::published};
  const Result<Answer> found = answer(situation, with_axis_value(d, rows), trace);
  EXPECT_TRUE(found.ok()) << error_text(found);
  return found.ok() ? *found : Answer{};
}

Answer answer_of(const TableRow& row) { return {row.schedule, row.kernel, row.origin}; }

ScheduleTable table_of(const TableCase& c) {
  Result<ScheduleTable> table = tabulate(c.descriptor, c.overrides, Policy::published);
  EXPECT_TRUE(table.ok()) << c.label << ": " << error_text(table);
  return table.ok() ? *table : ScheduleTable{c.descriptor, {TableRow{}}};
}

TEST(Tables, CoverEveryRowOnceAndMergeEqualNeighbours) {
  for (const TableCase& c : table_cases()) {
    const ScheduleTable table = table_of(c);
    ASSERT_FALSE(table.rows.empty()) << c.label;
    EXPECT_EQ(table.rows.front().min_rows, 0);
    EXPECT_EQ(table.rows.back().max_rows, kMaxTableRows);
    for (std::size_t i = 0; i + 1 < table.rows.size(); ++i) {
      EXPECT_LT(table.rows[i].min_rows, table.rows[i].max_rows) << c.label;
      EXPECT_EQ(table.rows[i].max_rows, table.rows[i + 1].min_rows) << c.label;
      EXPECT_FALSE(answer_of(table.rows[i]) == answer_of(table.rows[i + 1])) << c.label;
    }
  }
}

TEST(Tables, AgreeWithTheSolverAroundEveryEdge) {
  for (const TableCase& c : table_cases())
    for (const ScheduleTable table = table_of(c); const TableRow& row : table.rows)
      for (const std::int64_t rows : {row.max_rows - 1, row.max_rows, row.max_rows + 1})
        if (rows >= 1 && rows <= kMaxTableRows) {
          EXPECT_EQ(answer_of(table.at(rows)), answer_at(c, rows)) << c.label << " at " << rows;
        }
}

TEST(Tables, AgreeWithTheSolverRowByRow) {
  for (const TableCase& c : table_cases()) {
    const ScheduleTable table = table_of(c);
    for (std::int64_t rows = 1; rows <= 6000; ++rows)
      ASSERT_EQ(answer_of(table.at(rows)), answer_at(c, rows)) << c.label << " at " << rows;
  }
}

TEST(Tables, AgreeWithTheSolverOnSamplesUpToTheEnd) {
  std::mt19937_64 random(7);
  for (const TableCase& c : table_cases()) {
    const ScheduleTable table = table_of(c);
    for (int i = 0; i < 500; ++i) {
      const std::int64_t reach = std::int64_t{1} << (random() % 31);
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % reach);
      ASSERT_EQ(answer_of(table.at(rows)), answer_at(c, rows)) << c.label << " at " << rows;
    }
  }
}

TEST(Tables, TensorParallelIsRightForEverySampledRow) {
  const TableCase c{"tp8", indexed("h200_tp8", 512, 7168, 384, 0), {}};
  const ScheduleTable table = table_of(c);
  for (std::int64_t rows = 6000; rows <= 31000; ++rows)
    ASSERT_EQ(answer_of(table.at(rows)), answer_at(c, rows)) << rows;
}

TEST(Tables, TakeMillisecondsNotSeconds) {
  CHORD_SKIP_UNDER_SANITIZERS("times under a sanitizer say nothing");
  table_of({"warm", indexed("h200_prefill_ep8", 4096, 7168, 48, 0), {}});
  const auto start = std::chrono::steady_clock::now();
  constexpr int kTables = 20;
  for (int i = 0; i < kTables; ++i) {
    table_of({"prefill", indexed("h200_prefill_ep8", 4096, 7168, 48, 0), {}});
    table_of({"masked", masked(4096, 7168, 48, 0), {}});
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  RecordProperty("ms_per_table", std::to_string(took.count() / (2 * kTables)));
  EXPECT_LT(took.count() / (2 * kTables), 50);  // 0.2 ms on an idle core, shared cores included
}

TEST(SampledRouting, BracketsAreThoseOfAPlainCount) {
  // The same rule without increments: counts of the first draws, blocks of every candidate.
  for (const std::int64_t experts : {1, 3, 48}) {
    std::mt19937 generator(0);
    std::uint32_t mask = 0;
    while (static_cast<std::int64_t>(mask) < experts - 1) mask = mask * 2 + 1;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), 0);
    for (std::int64_t rows = 1; rows < 80 * experts; ++rows) {
      std::uint32_t drawn = generator() & mask;
      while (drawn > experts - 1) drawn = generator() & mask;
      ++counts[drawn];
      if (rows % 7 != 0 && rows > 200) continue;
      int best = 0;
      double fewest = 0;
      for (int block_m = 8; block_m <= 176; block_m += 8) {
        double blocks = 0;
        for (const std::int64_t count : counts)
          blocks += std::ceil(static_cast<double>(count) * 1.1 / block_m);
        if (best == 0 || blocks < fewest) {
          best = block_m;
          fewest = blocks;
        }
      }
      ASSERT_EQ(sampled_block_m(experts, rows), best) << experts << " experts, " << rows << " rows";
    }
  }
}

TEST(SampledRouting, HasAboutFifteenBracketsPerExpertCount) {
  for (const std::int64_t experts : {12, 24, 48, 96, 384}) {
    const auto& brackets = sampled_brackets(experts);
    EXPECT_GE(brackets.size(), 12u);
    EXPECT_LE(brackets.size(), 18u);
    EXPECT_EQ(brackets.front().first_rows, 1);
  }
}

TEST(CostModel, OrderOfClustersIsSettledWhereItSaysSo) {
  for (const int sms : {1, 33, 96, 97, 132})
    for (const int block_m : {8, 16, 64, 128})
      for (const int block_n : {64, 128, 256}) {
        GroupedProblem p{.masked = false, .n = 64, .k = 448, .experts = 1, .m = 0, .num_sms = sms};
        const auto order = [&](std::int64_t row_blocks) {
          p.m = row_blocks * block_m;
          int best = 0;
          for (int i = 1; i < 3; ++i) {
            const Cluster clusters[] = {{1, 1}, {1, 2}, {2, 1}};
            if (predicted_cost(p, block_m, block_n, clusters[i]).cycles <
                predicted_cost(p, block_m, block_n, clusters[best]).cycles)
              best = i;
          }
          return best;
        };
        const std::int64_t settled = settled_row_blocks(p, block_m, block_n);
        const int last = order(settled);
        for (std::int64_t more = 1; more < 200; ++more)
          ASSERT_EQ(order(settled + more), last) << sms << " " << block_m << "x" << block_n;
      }
}

}  // namespace
}  // namespace chord::heuristics
