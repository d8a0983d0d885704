// The rules of the published indexed profiles that are arithmetic: BM from routed rows and experts.
// BN, BK and the rest are rows of heuristics/profiles/*.json.
#pragma once

#include <cstdint>

#include "chord/status.h"
#include "heuristics/trace.h"

namespace chord::heuristics {

// Named in a profile's "block_m_rule".
enum class BlockMRule {
  by_row,                              // each row of the profile states block_m
  sampled_routing_then_even_blocks,    // h200_prefill_ep8
  sampled_routing_then_nearest_block,  // h200_tp8
  decode_steps,                        // h200_decode_ep8
};

Result<BlockMRule> parse_block_m_rule(std::string_view text);

// Must not be called for by_row.
int block_m_by_rule(BlockMRule rule, std::int64_t k, std::int64_t experts, std::int64_t rows,
                    Trace& trace);

// Never falls as rows grow; while it stays the same, outside the sampled brackets, BM never falls
// either. Tables look for change points by bisection inside such pieces.
int block_m_phase(BlockMRule rule, std::int64_t experts, std::int64_t rows);

}  // namespace chord::heuristics
