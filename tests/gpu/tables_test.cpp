// The edges of the indexed and masked schedule tables up to kMostRows and kMostExpectedM, one row
// below, at and above: each side's kernel is right there.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int64_t kMostRows = 4096;  // edges beyond cost too much memory for a test
constexpr std::int64_t kMostExpectedM = 128;

struct TableCase {
  const char* profile;  // empty: grouped_masked
  std::int64_t n, k, experts;
};

constexpr TableCase kTables[] = {
    {"h200_decode_ep8", 4096, 7168, 48},
    {"h200_decode_ep8", 7168, 2048, 48},
    {"h200_prefill_ep8", 4096, 7168, 48},
    {"h200_prefill_ep8", 7168, 2048, 48},
    {"h200_tp8", 512, 7168, 384},
    {"h200_tp8", 7168, 256, 384},
    {"", 4096, 7168, 48},
    {"", 7168, 2048, 48},
};

bool is_masked(const TableCase& one) { return *one.profile == '\0'; }

GemmDescriptor descriptor_of(const TableCase& one, Architecture arch, std::int64_t rows) {
  GemmDescriptor d;
  d.family = is_masked(one) ? Family::grouped_masked : Family::indexed;
  d.arch = arch;
  d.n = one.n;
  d.k = one.k;
  d.experts = one.experts;
  d.profile = one.profile;
  if (is_masked(one)) {
    d.max_m = 2 * kMostExpectedM;
    d.expected_m = rows;
  } else {
    d.rows = rows;
  }
  return d;
}

Result<std::set<std::int64_t>> rows_around_edges(const Engine& engine, const TableCase& one,
                                                 Architecture arch) {
  CHORD_TRY(const ScheduleTable table, engine.schedule_table(descriptor_of(one, arch, 0)));
  const std::int64_t most = is_masked(one) ? kMostExpectedM : kMostRows;
  std::set<std::int64_t> around{1};
  for (const TableRow& row : table.rows)
    for (const std::int64_t rows : {row.max_rows - 1, row.max_rows, row.max_rows + 1})
      if (rows >= 1 && rows <= most) around.insert(rows);
  return around;
}

const bool kRegistered = register_kernels([](const Engine& engine, Architecture arch) -> Decisions {
  std::vector<Decision> decisions;
  for (const TableCase& one : kTables) {
    CHORD_TRY(const std::set<std::int64_t> around, rows_around_edges(engine, one, arch));
    for (const std::int64_t rows : around) {
      CHORD_TRY(Decision decision, engine.plan(descriptor_of(one, arch, rows)));
      decisions.push_back(std::move(decision));
    }
  }
  return decisions;
});

// Each row to a random expert; masked: the expected rows, give or take a half.
std::vector<std::int64_t> random_counts(const TableCase& one, std::int64_t rows) {
  std::mt19937 random(static_cast<std::uint32_t>(rows));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(one.experts), 0);
  if (is_masked(one)) {
    for (std::int64_t& count : counts)
      count = std::max<std::int64_t>(
          0, rows + static_cast<std::int64_t>(random() % (rows + 1)) - (rows + 1) / 2);
  } else {
    for (std::int64_t row = 0; row < rows; ++row) ++counts[random() % counts.size()];
  }
  return counts;
}

class GpuTables : public GpuTest {
 protected:
  void expect_right_around_edges(const TableCase& one, const Weights& weights) {
    const Architecture arch = rig().device.arch;
    REQUIRE_VALUE(const std::set<std::int64_t> around, rows_around_edges(rig().engine, one, arch));
    ASSERT_GT(around.size(), 1u) << "a table without an edge";
    for (const std::int64_t rows : around) {
      REQUIRE_VALUE(const Decision decision, rig().engine.plan(descriptor_of(one, arch, rows)));
      REQUIRE_VALUE(const PreparedKernel kernel, rig().engine.prepare(decision));
      const KernelSpec spec{.family = decision.descriptor.family,
                            .n = one.n,
                            .k = one.k,
                            .block_m = decision.kernel.block_m};
      REQUIRE_VALUE(GemmRun run, GemmRun::make(rig(), kernel, weights,
                                               routing_of(spec, random_counts(one, rows)), {}));
      expect_right(run, fmt::format("{} {}x{}, {} rows", one.profile, one.n, one.k, rows));
    }
  }
};

TEST_F(GpuTables, KernelsAreRightAroundEveryEdge) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const TableCase& one : kTables) shapes.insert({one.n, one.k});
  for (const auto& [n, k] : shapes) {
    const auto first =
        std::find_if(std::begin(kTables), std::end(kTables),
                     [&, n = n, k = k](const TableCase& one) { return one.n == n && one.k == k; });
    REQUIRE_VALUE(const Weights weights,
                  Weights::make(rig(), {.experts = first->experts, .n = n, .k = k}, {}));
    for (const TableCase& one : kTables)
      if (one.n == n && one.k == k) expect_right_around_edges(one, weights);
  }
}

}  // namespace
}  // namespace chord::gpu_test
