// Integer arithmetic floors, only wave efficiency and the final quotient are real, as published.
#include "heuristics/cost_model.h"

#include <algorithm>
#include <array>

#include "chord/abi/scalar.h"

namespace chord::heuristics {
namespace {

using abi::ceil_div;

// Blocks times cycles per block passes 2^64 for the largest legal shapes.
using Wide = unsigned __int128;

Wide wide(std::int64_t value) { return static_cast<Wide>(value); }

constexpr std::int64_t kL2BytesPerCycle = 6153;  // floor(8e6 / 1.3e3)

std::int64_t l2_rate(int num_sms) { return std::min<std::int64_t>(64 * num_sms, kL2BytesPerCycle); }
std::int64_t l1_rate(int num_sms) { return std::int64_t{128} * num_sms; }

std::int64_t l2_bytes(std::int64_t k, int block_m, int block_n, Cluster cluster) {
  const std::int64_t output = std::int64_t{4} * block_m * block_n;
  return k * (4 * (block_m / cluster.n) + block_n / cluster.m) + output;
}

std::int64_t l1_bytes(std::int64_t k, int block_m, int block_n) {
  const std::int64_t output = std::int64_t{4} * block_m * block_n;
  return k * (4 * block_m + block_n) + k * (4 * std::max(64, block_m) + block_n) + 2 * output;
}

Wide blocks_per_row_block(const GroupedProblem& problem, int block_n) {
  return wide(ceil_div(problem.n, block_n)) * wide(problem.masked ? problem.experts : 1);
}

Wide blocks(const GroupedProblem& problem, int block_m, int block_n) {
  return wide(ceil_div(problem.m, block_m)) * blocks_per_row_block(problem, block_n);
}

}  // namespace

Cost predicted_cost(const GroupedProblem& problem, int block_m, int block_n, Cluster cluster) {
  const Wide count = blocks(problem, block_m, block_n);
  const Wide sms = wide(problem.num_sms);
  const Wide waves = (count + sms - 1) / sms;
  const double efficiency = static_cast<double>(count) / static_cast<double>(waves * sms);
  const Wide l2 =
      wide(l2_bytes(problem.k, block_m, block_n, cluster)) * count / wide(l2_rate(problem.num_sms));
  const Wide l1 =
      wide(l1_bytes(problem.k, block_m, block_n)) * count / wide(l1_rate(problem.num_sms));
  Cost cost;
  cost.cycles = static_cast<double>(std::max(l1, l2)) / efficiency;
  cost.loses = cluster.size() > 1 && (waves <= 1 || (problem.masked && problem.m <= block_m));
  cost.waves = static_cast<std::int64_t>(std::min(waves, Wide{1} << 62));
  return cost;
}

bool is_one_wave(const GroupedProblem& problem, int block_m, int block_n) {
  return blocks(problem, block_m, block_n) <= wide(problem.num_sms);
}

std::int64_t settled_row_blocks(const GroupedProblem& problem, int block_m, int block_n) {
  const std::int64_t l1 = l1_rate(problem.num_sms);
  const std::int64_t l2 = l2_rate(problem.num_sms);
  // Rates over the common denominator l1 * l2; below 2^62 for every legal shape.
  constexpr std::array<Cluster, 3> kClusters{Cluster{1, 1}, Cluster{1, 2}, Cluster{2, 1}};
  std::array<std::int64_t, kClusters.size()> rates{};
  for (std::size_t i = 0; i < rates.size(); ++i)
    rates[i] = std::max(l1_bytes(problem.k, block_m, block_n) * l2,
                        l2_bytes(problem.k, block_m, block_n, kClusters[i]) * l1);
  Wide settled = 1;
  for (std::size_t early = 0; early < rates.size(); ++early)
    for (std::size_t late = early + 1; late < rates.size(); ++late)
      if (rates[late] < rates[early])  // a tie goes to the early one, so only this order can waver
        settled = std::max(settled, wide(ceil_div(l1 * l2, rates[early] - rates[late])));
  const Wide per_row_block = blocks_per_row_block(problem, block_n);
  return static_cast<std::int64_t>((settled + per_row_block - 1) / per_row_block);
}

}  // namespace chord::heuristics
