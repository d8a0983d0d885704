// What is baked into a kernel of the problem it solves: N, K and the routing contract.
// Experts, rows, top_k and every pointer stay run-time arguments, so EP8, EP16, EP32 and redundant
// experts share cubins.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::abi {

enum class RoutingKind : i32 {
  indexed = 0,             // sorted_ids + expert_ids + num_tokens_padded (moe_align_block_size)
  grouped_contiguous = 1,  // m_indices (padded to 128 rows) or expert_offsets [E+1]
  grouped_masked = 2,      // x [E, max_m, K], masked_m [E]
};

struct Problem {
  i32 n = 0;  // output columns of one expert (rows of its weight)
  i32 k = 0;  // depth
  RoutingKind routing = RoutingKind::indexed;

  constexpr bool operator==(const Problem&) const = default;
};

inline constexpr i32 kColumnGranularity = 64;  // N % 64 == 0
inline constexpr i32 kDepthGranularity = 64;   // K % 64 == 0

constexpr bool is_legal_shape(i64 n, i64 k) {
  return n > 0 && k > 0 && n % kColumnGranularity == 0 && k % kDepthGranularity == 0 &&
         n <= 0x7fffffff && k <= 0x7fffffff;
}

}  // namespace chord::abi
