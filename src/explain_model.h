// What a launch costs at least: the arithmetic of floors for given rows, with the ceilings it is
// divided by. A model, never a measurement; it knows nothing of the engine, the cache or a GPU.
//
// Assumptions, all of them simple on purpose:
// - Indexed rows fall on experts evenly and independently, so the number of experts that any row
//   reaches is its expectation E * (1 - (1 - 1/E)^rows). min(E, rows) would count every expert long
//   before each one is really read: 160 rows on 48 experts reach 46, and 48 rows reach 31. Grouped
//   families are told their rows per expert, so there it is min(E, rows).
// - The rows are shared evenly by the experts that are reached; each is padded to tiles of 8.
// - Bytes are the weights of the reached experts (0.5625 B per weight, scales included), one read
//   of every routed activation row and one write of every output row.
// - The memory floor is those bytes over the read bandwidth, the tensor floor the operations of
//   rows without padding over the BF16 rate (scaled by the SM count for a slice of a GPU).
// - Predicted is the longer of the memory floor and the tensor floor with padding, plus the time
//   of an empty launch.
#pragma once

#include "chord/engine.h"

namespace chord {

struct Ceilings {
  double read_tb_per_s = 0;     // 10^12 bytes per second
  double bf16_tflop_per_s = 0;  // dense, of the whole GPU
  double launch_us = 0;         // an empty kernel between two events
  bool measured = false;        // false: from the vendor's data sheet
  const char* source = "";
};

Ceilings ceilings_of(Architecture arch);

// Fills active_experts and all fields below it from decision.descriptor.
void fill_floors(Explanation& explanation);

}  // namespace chord
