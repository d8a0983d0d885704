// From per-row errors to the limits of the contract: relative L2 of the whole output at most 3e-3,
// of every row and expert at most 1e-2, no element out of place. A global figure alone would hide
// one wrong row.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "tools/bench/gemm_run.h"

namespace chord::bench {
namespace {

constexpr double kMostOverall = 3e-3;
constexpr double kMostPerPart = 1e-2;

double relative(double difference, double norm) {
  if (difference == 0) return 0;
  if (norm == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(difference / norm);
}

struct Sums {
  double difference = 0, norm = 0;
};

}  // namespace

Comparison summarise(const std::vector<OwnedRow>& owned, const std::vector<RowError>& errors) {
  Comparison all;
  Sums whole;
  std::map<std::int32_t, Sums> experts;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const RowError& row = errors[i];
    const double row_l2 = relative(row.difference, row.norm);
    if (all.worst_row < 0 || row_l2 > all.worst_row_l2) {
      all.worst_row_l2 = row_l2;
      all.worst_row = owned[i].output;
    }
    Sums& expert = experts[owned[i].expert];
    for (Sums* sums : {&whole, &expert}) {
      sums->difference += row.difference;
      sums->norm += row.norm;
    }
    all.outliers += row.outliers;
    all.unwritten += row.unwritten;
    all.non_finite += row.non_finite;
  }
  for (const auto& [expert, sums] : experts) {
    const double l2 = relative(sums.difference, sums.norm);
    if (all.worst_expert >= 0 && l2 <= all.worst_expert_l2) continue;
    all.worst_expert_l2 = l2;
    all.worst_expert = expert;
  }
  all.rows = static_cast<std::int64_t>(errors.size());
  all.rel_l2 = relative(whole.difference, whole.norm);
  return all;
}

std::string Comparison::violation() const {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  // Written so that NaN fails.
  if (!(rel_l2 <= kMostOverall)) add(fmt::format("relative L2 {:.2e} of the output", rel_l2));
  if (!(worst_row_l2 <= kMostPerPart))
    add(fmt::format("relative L2 {:.2e} of row {}", worst_row_l2, worst_row));
  if (!(worst_expert_l2 <= kMostPerPart))
    add(fmt::format("relative L2 {:.2e} of expert {}", worst_expert_l2, worst_expert));
  if (outliers != 0) add(fmt::format("{} elements out of place", outliers));
  if (unwritten != 0) add(fmt::format("{} elements not written", unwritten));
  if (non_finite != 0) add(fmt::format("{} elements finite against non-finite", non_finite));
  if (changed != 0) add(fmt::format("{} elements written in rows nobody owns", changed));
  if (flags_left != 0) add(fmt::format("{} bytes of workspace flags left", flags_left));
  return text;
}

}  // namespace chord::bench
