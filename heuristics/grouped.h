// The published heuristic of the two grouped SM90 families: tiles, stages and cluster.
#pragma once

#include <optional>

#include "chord/overrides.h"
#include "chord/schedule.h"
#include "chord/status.h"
#include "heuristics/cost_model.h"
#include "heuristics/trace.h"

namespace chord::heuristics {

inline constexpr std::int64_t kPublishedSharedBytes = 232448;  // most of one CTA

// Shared memory of one CTA of the published grouped kernel.
std::int64_t published_shared_bytes(int block_m, int block_n, int block_k, int num_stages);
// One pipeline stage of it: activations, codes and scales.
std::int64_t published_stage_bytes(int block_m, int block_n, int block_k);

struct GroupedTiles {
  int block_m = 0;
  int block_n = 0;
  int block_k = 0;
  int num_stages = 0;

  bool operator==(const GroupedTiles&) const = default;
};

// `routing_block_m` is a block_m that the caller's routing already has: BN and BK stay what the
// problem's own BM asks for, where they fit. Tiles depend on m through BM (masked) or through the
// number of 128-row tiles (contiguous) only.
Result<GroupedTiles> grouped_tiles(const GroupedProblem& problem,
                                   std::optional<int> routing_block_m, const Overrides& pins,
                                   Trace& trace);

Result<Cluster> grouped_cluster(const GroupedProblem& problem, const GroupedTiles& tiles,
                                const Overrides& pins, Trace& trace);

Result<PublishedSchedule> solve_grouped(const GroupedProblem& problem,
                                        std::optional<int> routing_block_m, const Overrides& pins,
                                        Trace& trace);

}  // namespace chord::heuristics
