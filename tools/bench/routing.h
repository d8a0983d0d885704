// Routings on the host, in every spelling that the library takes, each with the list of rows that
// it says are computed: what the reference follows and what a launch is judged by. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "chord/arguments.h"
#include "chord/descriptor.h"

namespace chord::bench {

// One computed row: out[output] = x[source] * w[expert].
struct OwnedRow {
  std::int32_t source = 0;
  std::int32_t output = 0;
  std::int32_t expert = 0;
};

struct Routing {
  Family family = Family::indexed;
  std::vector<OwnedRow> owned;  // rows of one expert lie together
  std::int64_t source_rows = 0;
  std::int64_t output_rows = 0;

  // indexed
  std::vector<std::int32_t> sorted_ids;
  std::vector<std::int32_t> expert_ids;
  std::int32_t num_tokens_padded = 0;
  std::int64_t num_ids = 0;
  int top_k = 1;
  int block_m = 8;

  // grouped_contiguous: 32-bit values (m_indices, offsets32) or 64-bit ones
  abi::ContiguousSpelling spelling = abi::ContiguousSpelling::m_indices;
  std::vector<std::int32_t> groups32;
  std::vector<std::int64_t> groups64;

  // grouped_masked
  std::vector<std::int32_t> masked_m;
  std::int64_t max_m = 0;

  std::vector<std::int64_t> rows_per_expert(std::int64_t experts) const;
};

// A block of an indexed routing: an expert (or -1) and at most block_m ids.
struct Block {
  std::int32_t expert = -1;
  std::vector<std::int32_t> ids;
};

// Exactly these blocks, padded with sentinels. top_k: source row = id / top_k. Blocks of experts
// outside [0, experts) own nothing.
Routing indexed_blocks(const std::vector<Block>& blocks, std::int64_t experts, std::int64_t num_ids,
                       int top_k, int block_m);

// What moe_align_block_size makes: per expert its ids in ascending order, padded to block_m.
// expert_of_id[id]: an expert, or -1 for one that another GPU holds; its ids fill blocks of expert
// -1 before all others.
Routing indexed(const std::vector<std::int32_t>& expert_of_id, std::int64_t experts, int top_k,
                int block_m);

// Appends `blocks` blocks of garbage behind the valid prefix: ids and experts that must not be
// read.
void add_garbage_tail(Routing& routing, int blocks);

// m_indices: every expert padded to 128 rows with -1.
Routing padded_rows(const std::vector<std::int64_t>& counts);

// expert_offsets, 32 or 64 bits wide, no padding; `tail` further rows belong to nobody.
Routing ragged_rows(const std::vector<std::int64_t>& counts, abi::ContiguousSpelling spelling,
                    std::int64_t tail = 0);

// counts are clamped to [0, max_m], as the kernel does.
Routing masked(const std::vector<std::int64_t>& counts, std::int64_t max_m);

// Draws. Stable for ever: results of different days are compared by them.

// Top-k experts of every token, uniform without repetition: id = token * top_k + i. std::mt19937
// seeded with the token count; step i of a Fisher-Yates shuffle swaps with i + g() % (E - i).
std::vector<std::int32_t> random_top_k(std::int64_t tokens, std::int64_t experts, int top_k);

// max(1, floor(m * (0.7 + 0.6 * (g() % 10001) / 10000))) rows per expert, seeded with m.
std::vector<std::int64_t> drawn_counts(std::int64_t m, std::int64_t experts);

}  // namespace chord::bench
