// BM by sampled routing: the block that wastes the fewest blocks on one fixed random routing. The
// routing is MT19937 seeded with 0, one draw per routed row, so the answer is a step function of
// the rows with about 15 steps per expert count. The steps are found once per expert count and
// kept.
#pragma once

#include <cstdint>
#include <vector>

namespace chord::heuristics {

inline constexpr int kSampledTokensPerExpert = 80;  // below it the sampled routing decides
inline constexpr int kLargestSampledBlock = 176;

struct Bracket {
  std::int64_t first_rows = 0;  // up to the next bracket's first_rows - 1
  int block_m = 0;
};

// Ascending; the first begins at 1 and the last ends at 80 * experts - 1. Thread-safe; the
// reference stays valid for the life of the process.
const std::vector<Bracket>& sampled_brackets(std::int64_t experts);

int sampled_block_m(std::int64_t experts, std::int64_t rows);

}  // namespace chord::heuristics
