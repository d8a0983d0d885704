// Checked mode: the routing read back and refused where it breaks its contract. For debugging; it
// synchronises. The checks themselves are pure functions over host copies.
#pragma once

#include <cstdint>
#include <span>

#include "chord/arguments.h"
#include "src/cuda/driver_api.h"
#include "src/launch/parameters.h"

namespace chord::launch {

// Refuses a count that is no multiple of block_m or beyond capacity, an id twice, a valid id after
// a sentinel, and an expert that is neither -1 nor in [0, experts), naming the block.
Status check_indexed(std::span<const std::int32_t> sorted_ids,
                     std::span<const std::int32_t> expert_ids, std::int64_t num_tokens_padded,
                     const IndexedRouting& routing, int block_m, std::int64_t experts);

// Refuses rows of one expert in two places, an expert that does not begin at a multiple of 128
// rows, and indices outside [-1, experts).
Status check_m_indices(std::span<const std::int32_t> m_indices, std::int64_t experts);

// Refuses offsets that do not begin at 0, decrease, or end beyond `rows`.
Status check_offsets(std::span<const std::int64_t> offsets, std::int64_t rows);

// Refuses counts outside [0, max_m].
Status check_masked(std::span<const std::int32_t> masked_m, std::int64_t max_m);

// Reads the routing of a launch back and checks it.
Status check_routing(const cuda::DriverApi& driver, const LaunchShape& shape,
                     const GemmArguments& arguments, cuda::CUstream stream);

}  // namespace chord::launch
