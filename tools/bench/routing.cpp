// Builders of routings, and the draws.
#include "tools/bench/routing.h"

#include <algorithm>
#include <random>

namespace chord::bench {
namespace {

constexpr std::int64_t kPaddedRows = 128;

void sort_by_expert(std::vector<OwnedRow>& owned) {
  std::stable_sort(owned.begin(), owned.end(),
                   [](const OwnedRow& a, const OwnedRow& b) { return a.expert < b.expert; });
}

OwnedRow same_row(std::int64_t row, std::size_t expert) {
  const auto at = static_cast<std::int32_t>(row);
  return {at, at, static_cast<std::int32_t>(expert)};
}

}  // namespace

std::vector<std::int64_t> Routing::rows_per_expert(std::int64_t experts) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), 0);
  for (const OwnedRow& row : owned) ++counts[row.expert];
  return counts;
}

Routing indexed_blocks(const std::vector<Block>& blocks, std::int64_t experts, std::int64_t num_ids,
                       int top_k, int block_m) {
  Routing routing;
  routing.family = Family::indexed;
  routing.num_ids = num_ids;
  routing.top_k = top_k;
  routing.block_m = block_m;
  routing.output_rows = num_ids;
  routing.source_rows = (num_ids + top_k - 1) / top_k;
  for (const Block& block : blocks) {
    routing.expert_ids.push_back(block.expert);
    for (const std::int32_t id : block.ids) {
      routing.sorted_ids.push_back(id);
      if (block.expert >= 0 && block.expert < experts)
        routing.owned.push_back({id / top_k, id, block.expert});
    }
    routing.sorted_ids.resize(routing.expert_ids.size() * block_m,
                              static_cast<std::int32_t>(num_ids));
  }
  routing.num_tokens_padded = static_cast<std::int32_t>(routing.sorted_ids.size());
  sort_by_expert(routing.owned);
  return routing;
}

Routing indexed(const std::vector<std::int32_t>& expert_of_id, std::int64_t experts, int top_k,
                int block_m) {
  std::vector<std::vector<std::int32_t>> ids(static_cast<std::size_t>(experts) + 1);
  for (std::size_t id = 0; id < expert_of_id.size(); ++id)
    ids[expert_of_id[id] + 1].push_back(static_cast<std::int32_t>(id));
  std::vector<Block> blocks;
  for (std::size_t group = 0; group < ids.size(); ++group) {
    const std::vector<std::int32_t>& all = ids[group];
    for (std::size_t at = 0; at < all.size(); at += block_m) {
      const std::size_t end = std::min(all.size(), at + block_m);
      blocks.push_back(
          {static_cast<std::int32_t>(group) - 1, {all.begin() + at, all.begin() + end}});
    }
  }
  return indexed_blocks(blocks, experts, static_cast<std::int64_t>(expert_of_id.size()), top_k,
                        block_m);
}

void add_garbage_tail(Routing& routing, int blocks) {
  for (int i = 0; i < blocks; ++i) routing.expert_ids.push_back(i % 2 == 0 ? 0 : 0x7ffffff0);
  for (int i = 0; i < blocks * routing.block_m; ++i)
    routing.sorted_ids.push_back(i % 3 == 0 ? 0 : -0x7ffffff0 + i);
}

Routing padded_rows(const std::vector<std::int64_t>& counts) {
  Routing routing;
  routing.family = Family::grouped_contiguous;
  routing.spelling = abi::ContiguousSpelling::m_indices;
  for (std::size_t expert = 0; expert < counts.size(); ++expert) {
    const std::size_t begin = routing.groups32.size();
    const std::int64_t padded = (counts[expert] + kPaddedRows - 1) / kPaddedRows * kPaddedRows;
    routing.groups32.resize(begin + padded, -1);
    for (std::int64_t i = 0; i < counts[expert]; ++i) {
      routing.groups32[begin + i] = static_cast<std::int32_t>(expert);
      routing.owned.push_back(same_row(static_cast<std::int64_t>(begin) + i, expert));
    }
  }
  routing.source_rows = routing.output_rows = static_cast<std::int64_t>(routing.groups32.size());
  return routing;
}

Routing ragged_rows(const std::vector<std::int64_t>& counts, abi::ContiguousSpelling spelling,
                    std::int64_t tail) {
  Routing routing;
  routing.family = Family::grouped_contiguous;
  routing.spelling = spelling;
  routing.groups64.push_back(0);
  for (std::size_t expert = 0; expert < counts.size(); ++expert) {
    const std::int64_t begin = routing.groups64.back();
    for (std::int64_t i = 0; i < counts[expert]; ++i)
      routing.owned.push_back(same_row(begin + i, expert));
    routing.groups64.push_back(begin + counts[expert]);
  }
  routing.source_rows = routing.output_rows = routing.groups64.back() + tail;
  if (spelling == abi::ContiguousSpelling::offsets32) {
    routing.groups32.assign(routing.groups64.begin(), routing.groups64.end());
    routing.groups64.clear();
  }
  return routing;
}

Routing masked(const std::vector<std::int64_t>& counts, std::int64_t max_m) {
  Routing routing;
  routing.family = Family::grouped_masked;
  routing.max_m = max_m;
  routing.source_rows = routing.output_rows = static_cast<std::int64_t>(counts.size()) * max_m;
  for (std::size_t expert = 0; expert < counts.size(); ++expert) {
    routing.masked_m.push_back(static_cast<std::int32_t>(counts[expert]));
    for (std::int64_t i = 0; i < std::min(counts[expert], max_m); ++i)
      routing.owned.push_back(same_row(static_cast<std::int64_t>(expert) * max_m + i, expert));
  }
  return routing;
}

std::vector<std::int32_t> random_top_k(std::int64_t tokens, std::int64_t experts, int top_k) {
  std::mt19937 draw(static_cast<std::uint32_t>(tokens));
  std::vector<std::int32_t> chosen;
  std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<std::int32_t>(e);
    for (int i = 0; i < top_k; ++i) {
      std::swap(order[i], order[i + draw() % (experts - i)]);
      chosen.push_back(order[i]);
    }
  }
  return chosen;
}

std::vector<std::int64_t> drawn_counts(std::int64_t m, std::int64_t experts) {
  std::mt19937 draw(static_cast<std::uint32_t>(m));
  std::vector<std::int64_t> counts;
  for (std::int64_t e = 0; e < experts; ++e) {
    const double share = 0.7 + 0.6 * (draw() % 10001) / 10000;
    counts.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(m * share)));
  }
  return counts;
}

}  // namespace chord::bench
