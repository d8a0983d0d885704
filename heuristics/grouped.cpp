// The grouped rules in the order of the decision: BM, BN, stages, cluster. Integer arithmetic but
// for the cost model.
#include "heuristics/grouped.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "chord/abi/scalar.h"
#include "heuristics/pins.h"

namespace chord::heuristics {
namespace {

using abi::ceil_div;
using abi::round_up;

constexpr int kLargestBlockM = 128;
constexpr int kMaxStages = 16;
constexpr int kFullTileArea = 128 * 192;  // from here on 3 stages are enough

int masked_block_m(const GroupedProblem& problem, Trace& trace) {
  const bool deep = problem.k >= 4096;
  const std::int64_t wanted = deep ? 13 * problem.m / 10 : ceil_div(5 * problem.m, 4);
  const std::int64_t block_m =
      std::min<std::int64_t>(round_up(std::max<std::int64_t>(16, wanted), 8), kLargestBlockM);
  trace.because("masked_block_m_from_expected_m",
                "expected_m {} x {} is {}: block_m {} (multiples of 8 in 16..128)", problem.m,
                deep ? "1.3 (K >= 4096)" : "1.25 (K < 4096)", wanted, block_m);
  return static_cast<int>(block_m);
}

int masked_block_n(const GroupedProblem& problem, int block_m, Trace& trace) {
  const std::int64_t tiles = problem.experts * ceil_div(problem.n, 256);
  const bool deep = problem.k >= 4096;
  if (!deep && block_m >= 72) {
    trace.because("masked_block_n_128_for_tall_blocks",
                  "block_m {} >= 72 with K {} < 4096: block_n 128", block_m, problem.k);
    return 128;
  }
  const int waves = deep || block_m < 32 ? 2 : 3;
  const std::int64_t needed = std::int64_t{waves} * problem.num_sms;
  const int block_n = tiles >= needed ? 256 : 128;
  trace.because("masked_block_n_from_tiles",
                "{} experts x {} tiles of 256 columns are {}, {} {} x {} SMs: block_n {}",
                problem.experts, ceil_div(problem.n, 256), tiles,
                tiles >= needed ? "at least" : "fewer than", waves, problem.num_sms, block_n);
  return block_n;
}

std::int64_t contiguous_tiles(const GroupedProblem& problem) {
  return ceil_div(problem.m, 128) * ceil_div(problem.n, 128);
}

int contiguous_block_m(const GroupedProblem& problem, Trace& trace) {
  const std::int64_t tiles = contiguous_tiles(problem);
  const int block_m = tiles < problem.num_sms ? 64 : 128;
  trace.because("contiguous_block_m_from_tiles",
                "{} rows and {} columns are {} tiles of 128 x 128, {} {} SMs: block_m {}",
                problem.m, problem.n, tiles, tiles < problem.num_sms ? "fewer than" : "at least",
                problem.num_sms, block_m);
  return block_m;
}

int contiguous_block_n(const GroupedProblem& problem, Trace& trace) {
  const std::int64_t tiles = contiguous_tiles(problem);
  const bool narrow = 3 * tiles < 2 * std::int64_t{problem.num_sms};
  trace.because("contiguous_block_n_from_tiles", "{} tiles are {} two thirds of {} SMs: block_n {}",
                tiles, narrow ? "fewer than" : "at least", problem.num_sms, narrow ? 64 : 128);
  return narrow ? 64 : 128;
}

std::string tile_text(const GroupedTiles& tiles) {
  return fmt::format("tile {}x{}x{}", tiles.block_m, tiles.block_n, tiles.block_k);
}

// The stages of these blocks, or why the blocks can not be: empty text means they can.
std::string complete_stages(const GroupedProblem& problem, const Overrides& pins,
                            GroupedTiles& tiles) {
  if (tiles.block_m > 128 && tiles.block_n > 128)
    return fmt::format("block_m {} and block_n {} are both above 128", tiles.block_m,
                       tiles.block_n);
  const std::int64_t fixed = published_shared_bytes(tiles.block_m, tiles.block_n, tiles.block_k, 0);
  const std::int64_t stage = published_stage_bytes(tiles.block_m, tiles.block_n, tiles.block_k);
  const std::int64_t fitting = std::max<std::int64_t>(0, kPublishedSharedBytes - fixed) / stage;
  const int depth = problem.masked && tiles.block_m >= 72 ? 768 : 512;
  const std::int64_t wanted = std::max(3, depth / tiles.block_k);
  tiles.num_stages = static_cast<int>(
      pins.num_stages.value_or(std::min({fitting, std::int64_t{kMaxStages}, wanted})));
  if (tiles.num_stages > fitting)
    return fmt::format("{} stages need {} bytes of shared memory, {} fit", tiles.num_stages,
                       fixed + tiles.num_stages * stage, kPublishedSharedBytes);
  const int fewest = tiles.block_m * tiles.block_n < kFullTileArea ? 4 : 3;
  if (tiles.num_stages < fewest)
    return fmt::format("{} stages of {} bytes, fewer than {}", tiles.num_stages, stage, fewest);
  return {};
}

// The wanted value first, then smaller ones unless it is pinned.
std::vector<int> choices(std::optional<int> pinned, int wanted, std::vector<int> smaller) {
  if (pinned) return {*pinned};
  std::vector<int> all{wanted};
  for (const int value : smaller)
    if (value < wanted) all.push_back(value);
  return all;
}

GroupedTiles wanted_tiles(const GroupedProblem& problem, const Overrides& pins, Trace& trace) {
  GroupedTiles tiles;
  if (pins.block_m)
    tiles.block_m = *pins.block_m;
  else
    tiles.block_m =
        problem.masked ? masked_block_m(problem, trace) : contiguous_block_m(problem, trace);
  if (pins.block_n)
    tiles.block_n = *pins.block_n;
  else
    tiles.block_n = problem.masked ? masked_block_n(problem, tiles.block_m, trace)
                                   : contiguous_block_n(problem, trace);
  tiles.block_k = pins.block_k.value_or(problem.masked ? 128 : 64);
  return tiles;
}

// What the caller stated, for the error of a plan that can not be.
std::string stated_text(std::optional<int> routing_block_m, const Overrides& pins) {
  std::string text = pinned_text(pins);
  if (routing_block_m)
    text += fmt::format("{}block_m {}", text.empty() ? "" : ", ", *routing_block_m);
  return text;
}

bool divides(const GroupedProblem& problem, const GroupedTiles& tiles, Cluster cluster,
             std::string& why) {
  if (problem.num_sms % cluster.size() != 0) {
    why = fmt::format("{} CTAs do not divide {} SMs", cluster.size(), problem.num_sms);
    return false;
  }
  const std::int64_t column_tiles = ceil_div(problem.n, tiles.block_n);
  if (problem.masked && column_tiles % cluster.size() != 0) {
    why = fmt::format("{} CTAs do not divide {} column tiles", cluster.size(), column_tiles);
    return false;
  }
  return true;
}

}  // namespace

std::int64_t published_stage_bytes(int block_m, int block_n, int block_k) {
  const std::int64_t scales = round_up(std::int64_t{block_k / 32} * block_n * 2, 128);
  return std::int64_t{2} * block_m * block_k + std::int64_t{block_n} * block_k / 2 + scales;
}

std::int64_t published_shared_bytes(int block_m, int block_n, int block_k, int num_stages) {
  return round_up(std::int64_t{2} * block_m * block_n, 1024) + 256 +
         num_stages * published_stage_bytes(block_m, block_n, block_k);
}

Result<GroupedTiles> grouped_tiles(const GroupedProblem& problem,
                                   std::optional<int> routing_block_m, const Overrides& pins,
                                   Trace& trace) {
  GroupedTiles wanted = wanted_tiles(problem, pins, trace);
  if (routing_block_m) wanted.block_m = *routing_block_m;
  std::string first_why;
  for (const int block_k : choices(pins.block_k, wanted.block_k, {64})) {
    for (const int block_n : choices(pins.block_n, wanted.block_n, {128, 64})) {
      GroupedTiles tiles{wanted.block_m, block_n, block_k, 0};
      const std::string why = complete_stages(problem, pins, tiles);
      if (why.empty()) {
        trace.because("stages_that_fit", "{}: {} stages, {} bytes of shared memory",
                      tile_text(tiles), tiles.num_stages,
                      published_shared_bytes(tiles.block_m, block_n, block_k, tiles.num_stages));
        return tiles;
      }
      trace.reject([&] { return tile_text(tiles); }, "{}", why);
      if (first_why.empty()) first_why = why;
    }
  }
  return Error{ErrorCode::invalid_argument, stated_text(routing_block_m, pins),
               fmt::format("no tile of {} can be: {}",
                           problem.masked ? "grouped_masked" : "grouped_contiguous", first_why),
               "pin fewer fields, or smaller blocks"};
}

namespace {

// How a rejected cluster is called, where somebody asks.
auto named(Cluster cluster) {
  return [cluster] { return fmt::format("cluster {}x{}", cluster.m, cluster.n); };
}

// Integers are written five times as fast as doubles, and a plan writes several.
std::int64_t whole(double cycles) {
  return static_cast<std::int64_t>(std::nearbyint(std::min(cycles, 9e18)));
}

}  // namespace

Result<Cluster> grouped_cluster(const GroupedProblem& problem, const GroupedTiles& tiles,
                                const Overrides& pins, Trace& trace) {
  std::optional<Cluster> best;
  Cost best_cost;
  std::string why = "the candidates are 1x1, 1x2 and 2x1";
  for (const Cluster cluster : {Cluster{1, 1}, Cluster{1, 2}, Cluster{2, 1}}) {
    if (pins.cluster_m.value_or(cluster.m) != cluster.m) continue;
    if (pins.cluster_n.value_or(cluster.n) != cluster.n) continue;
    std::string reason;
    if (!divides(problem, tiles, cluster, reason)) {
      why = reason;
      trace.reject(named(cluster), "{}", reason);
      continue;
    }
    const Cost cost = predicted_cost(problem, tiles.block_m, tiles.block_n, cluster);
    const bool better = !best || (!cost.loses && cost.cycles < best_cost.cycles);
    if (!better) {
      if (cost.loses)
        trace.reject(named(cluster), "{}",
                     cost.waves <= 1 ? "one wave of blocks: a cluster does not pay"
                                     : "expected_m fits one block: a cluster does not pay");
      else
        trace.reject(named(cluster), "{} predicted cycles, {} for {}x{}", whole(cost.cycles),
                     whole(best_cost.cycles), best->m, best->n);
      continue;
    }
    if (best)
      trace.reject(named(*best), "{} predicted cycles, {} for {}x{}", whole(best_cost.cycles),
                   whole(cost.cycles), cluster.m, cluster.n);
    best = cluster;
    best_cost = cost;
  }
  if (!best)
    return Error{ErrorCode::invalid_argument, pinned_text(pins), "no such cluster: " + why,
                 "leave CHORD_W4A16_CM and CHORD_W4A16_CN unset"};
  trace.because("least_predicted_cycles", "cluster {}x{}: {} predicted cycles in {} wave(s)",
                best->m, best->n, whole(best_cost.cycles), best_cost.waves);
  return *best;
}

Result<PublishedSchedule> solve_grouped(const GroupedProblem& problem,
                                        std::optional<int> routing_block_m, const Overrides& pins,
                                        Trace& trace) {
  CHORD_TRY(const GroupedTiles tiles, grouped_tiles(problem, routing_block_m, pins, trace));
  CHORD_TRY(const Cluster cluster, grouped_cluster(problem, tiles, pins, trace));
  PublishedSchedule schedule;
  schedule.block_m = tiles.block_m;
  schedule.block_n = tiles.block_n;
  schedule.block_k = tiles.block_k;
  schedule.num_stages = tiles.num_stages;
  schedule.cluster_m = cluster.m;
  schedule.cluster_n = cluster.n;
  schedule.smem_bytes =
      published_shared_bytes(tiles.block_m, tiles.block_n, tiles.block_k, tiles.num_stages);
  return schedule;
}

}  // namespace chord::heuristics
