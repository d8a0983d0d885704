// Real arithmetic here is IEEE double in the published order: rows / experts, then * 1.1 or / 0.9.
#include "heuristics/indexed.h"

#include <cassert>
#include <cmath>

#include "heuristics/sampled_routing.h"

namespace chord::heuristics {
namespace {

double tokens_per_expert(std::int64_t experts, std::int64_t rows) {
  return static_cast<double>(rows) / static_cast<double>(experts);
}

bool is_sampled(double tokens) { return tokens < kSampledTokensPerExpert; }

// Ties go to the even neighbour, whatever rounding mode the process is in.
int round_half_even(double value) {
  const double below = std::floor(value);
  const int whole = static_cast<int>(below);
  if (value - below > 0.5) return whole + 1;
  if (value - below < 0.5) return whole;
  return whole % 2 == 0 ? whole : whole + 1;
}

int sampled(std::int64_t experts, std::int64_t rows, Trace& trace) {
  const int block_m = sampled_block_m(experts, rows);
  trace.because(
      "sampled_routing_below_80_tokens_per_expert",
      "{} rows over {} experts are {:.4g} per expert, below 80: block_m {} needs the fewest "
      "blocks on the sampled routing",
      rows, experts, tokens_per_expert(experts, rows), block_m);
  return block_m;
}

constexpr double kPadding = 1.1;  // rows per expert are expected to vary by a tenth

int even_blocks(std::int64_t k, std::int64_t experts, std::int64_t rows, Trace& trace) {
  const double tokens = tokens_per_expert(experts, rows);
  if (is_sampled(tokens)) return sampled(experts, rows, trace);
  const double padded = kPadding * tokens;
  const double blocks = std::ceil(padded / kLargestSampledBlock);
  if (blocks <= 2) {
    const int block_m = 8 * static_cast<int>(std::ceil(padded / blocks / 8));
    trace.because("even_blocks_up_to_352_padded_rows",
                  "{:.4g} rows per expert, {:.4g} with padding, are {} even block(s) of {}", tokens,
                  padded, static_cast<int>(blocks), block_m);
    return block_m;
  }
  if (tokens <= 352 && k >= 4096) {
    trace.because("largest_block_up_to_352_tokens_per_expert",
                  "{:.4g} rows per expert, at most 352, and K {} >= 4096: block_m 176", tokens, k);
    return kLargestSampledBlock;
  }
  trace.because("block_128_for_many_tokens",
                "{:.4g} rows per expert and K {}: block_m 128 (176 needs at most 352 rows and K >= "
                "4096)",
                tokens, k);
  return 128;
}

int nearest_block(std::int64_t experts, std::int64_t rows, Trace& trace) {
  const double tokens = tokens_per_expert(experts, rows);
  if (is_sampled(tokens)) return sampled(experts, rows, trace);
  if (tokens <= 128) {
    const int block_m = 8 * round_half_even(kPadding * tokens / 8);
    trace.because("nearest_block_up_to_128_tokens_per_expert",
                  "{:.4g} rows per expert, {:.4g} with padding: the nearest multiple of 8 is {}",
                  tokens, kPadding * tokens, block_m);
    return block_m;
  }
  const int block_m = tokens <= 190 ? 96 : 128;
  trace.because(
      tokens <= 190 ? "block_96_up_to_190_tokens_per_expert" : "block_128_for_many_tokens",
      "{:.4g} rows per expert, {} 190: block_m {}", tokens, tokens <= 190 ? "at most" : "above",
      block_m);
  return block_m;
}

int decode_steps(std::int64_t experts, std::int64_t rows, Trace& trace) {
  const double scaled = tokens_per_expert(experts, rows) / 0.9;
  const int block_m = scaled <= 6 ? 8 : scaled <= 13 ? 16 : 24;
  trace.because(
      "decode_steps_of_tokens_per_expert",
      "{} rows over {} experts over 0.9 are {:.4g}: block_m {} (8 up to 6, 16 up to 13, 24 "
      "above)",
      rows, experts, scaled, block_m);
  return block_m;
}

}  // namespace

Result<BlockMRule> parse_block_m_rule(std::string_view text) {
  if (text == "by_row") return BlockMRule::by_row;
  if (text == "sampled_routing_then_even_blocks")
    return BlockMRule::sampled_routing_then_even_blocks;
  if (text == "sampled_routing_then_nearest_block")
    return BlockMRule::sampled_routing_then_nearest_block;
  if (text == "decode_steps") return BlockMRule::decode_steps;
  return Error{ErrorCode::invalid_argument, fmt::format("block_m_rule '{}'", text), "no such rule",
               "one of: by_row, sampled_routing_then_even_blocks, "
               "sampled_routing_then_nearest_block, decode_steps"};
}

int block_m_by_rule(BlockMRule rule, std::int64_t k, std::int64_t experts, std::int64_t rows,
                    Trace& trace) {
  switch (rule) {
    case BlockMRule::sampled_routing_then_even_blocks:
      return even_blocks(k, experts, rows, trace);
    case BlockMRule::sampled_routing_then_nearest_block:
      return nearest_block(experts, rows, trace);
    case BlockMRule::decode_steps:
      return decode_steps(experts, rows, trace);
    case BlockMRule::by_row:
      break;
  }
  assert(false);
  return 0;
}

int block_m_phase(BlockMRule rule, std::int64_t experts, std::int64_t rows) {
  const double tokens = tokens_per_expert(experts, rows);
  switch (rule) {
    case BlockMRule::sampled_routing_then_even_blocks: {
      if (is_sampled(tokens)) return 0;
      const double blocks = std::ceil(kPadding * tokens / kLargestSampledBlock);
      return blocks <= 2 ? static_cast<int>(blocks) : tokens <= 352 ? 3 : 4;
    }
    case BlockMRule::sampled_routing_then_nearest_block:
      return is_sampled(tokens) ? 0 : tokens <= 128 ? 1 : tokens <= 190 ? 2 : 3;
    case BlockMRule::decode_steps:
    case BlockMRule::by_row:
      break;
  }
  return 0;
}

}  // namespace chord::heuristics
