// The published cost model of the grouped SM90 kernels: cycles of L1 and L2 traffic over wave
// efficiency. It chooses the cluster and nothing else.
#pragma once

#include <cstdint>

namespace chord::heuristics {

struct GroupedProblem {
  bool masked = false;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t experts = 0;
  std::int64_t m = 0;  // expected_m (masked) or total rows (contiguous)
  int num_sms = 0;
};

struct Cluster {
  int m = 1;
  int n = 1;

  int size() const { return m * n; }
};

struct Cost {
  double cycles = 0;
  bool loses = false;  // a cluster never pays here
  std::int64_t waves = 0;
};

Cost predicted_cost(const GroupedProblem& problem, int block_m, int block_n, Cluster cluster);

// One wave of blocks at most: no cluster pays.
bool is_one_wave(const GroupedProblem& problem, int block_m, int block_n);

// The number of rows in blocks of block_m, ceil(m / block_m), from which the order of the
// candidates never changes again while everything but m stays the same: below it the floors of the
// model can make two costs equal. Cost is floor(rate * blocks) with a rational rate per candidate,
// so an order is settled once blocks exceed 1 / (difference of the rates).
std::int64_t settled_row_blocks(const GroupedProblem& problem, int block_m, int block_n);

}  // namespace chord::heuristics
