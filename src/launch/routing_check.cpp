// Checked mode: contracts of the routing kinds as plain loops over host copies.
#include "src/launch/routing_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace chord::launch {
namespace {

constexpr std::int64_t kPaddedRows = 128;

Error broken(const char* routing, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, fmt::format("checked {} routing", routing),
               std::move(found), std::move(help)};
}

template <class Value>
Result<std::vector<Value>> read_back(const cuda::DriverApi& driver, const void* from,
                                     std::int64_t count) {
  std::vector<Value> values(static_cast<std::size_t>(count));
  if (count > 0)
    CHORD_TRY(cuda::check(driver.memcpy_dtoh(values.data(), cuda::device_address(from),
                                             values.size() * sizeof(Value)),
                          "read the routing back"));
  return values;
}

Status check(const cuda::DriverApi& driver, const LaunchShape& shape, std::int64_t experts,
             const IndexedRouting& routing) {
  CHORD_TRY(const auto padded, read_back<std::int32_t>(driver, routing.num_tokens_padded, 1));
  const std::int64_t count =
      std::max<std::int64_t>(0, std::min<std::int64_t>(padded[0], routing.capacity));
  CHORD_TRY(const auto ids, read_back<std::int32_t>(driver, routing.sorted_ids, count));
  CHORD_TRY(const auto owners,
            read_back<std::int32_t>(driver, routing.expert_ids, count / shape.schedule.block_m));
  return check_indexed(ids, owners, padded[0], routing, shape.schedule.block_m, experts);
}

Status check(const cuda::DriverApi& driver, const LaunchShape&, std::int64_t experts,
             const ContiguousRouting& routing) {
  if (routing.spelling == abi::ContiguousSpelling::m_indices) {
    CHORD_TRY(const auto indices, read_back<std::int32_t>(driver, routing.groups, routing.rows));
    return check_m_indices(indices, experts);
  }
  if (routing.spelling == abi::ContiguousSpelling::offsets64) {
    CHORD_TRY(const auto offsets, read_back<std::int64_t>(driver, routing.groups, experts + 1));
    return check_offsets(offsets, routing.rows);
  }
  CHORD_TRY(const auto narrow, read_back<std::int32_t>(driver, routing.groups, experts + 1));
  return check_offsets(std::vector<std::int64_t>(narrow.begin(), narrow.end()), routing.rows);
}

Status check(const cuda::DriverApi& driver, const LaunchShape&, std::int64_t experts,
             const MaskedRouting& routing) {
  CHORD_TRY(const auto counts, read_back<std::int32_t>(driver, routing.masked_m, experts));
  return check_masked(counts, routing.max_m);
}

}  // namespace

Status check_indexed(std::span<const std::int32_t> sorted_ids,
                     std::span<const std::int32_t> expert_ids, std::int64_t num_tokens_padded,
                     const IndexedRouting& routing, int block_m, std::int64_t experts) {
  if (num_tokens_padded < 0 || num_tokens_padded % block_m != 0)
    return broken(
        "indexed", fmt::format("num_tokens_padded is {}", num_tokens_padded),
        fmt::format("a multiple of block_m {} is needed: align with the planned block_m", block_m));
  if (num_tokens_padded > routing.capacity)
    return broken("indexed",
                  fmt::format("num_tokens_padded {} is beyond the capacity {}", num_tokens_padded,
                              routing.capacity),
                  "make sorted_ids larger or pass its real capacity");
  std::vector<bool> seen(static_cast<std::size_t>(routing.num_ids), false);
  for (std::int64_t block = 0; block < num_tokens_padded / block_m; ++block) {
    const std::int32_t expert = expert_ids[block];
    if (expert < -1 || expert >= experts)
      return broken("indexed", fmt::format("block {} has expert {}", block, expert),
                    fmt::format("-1 or 0 to {}", experts - 1));
    bool padding = false;
    for (int row = 0; row < block_m; ++row) {
      const std::int32_t id = sorted_ids[block * block_m + row];
      if (id < 0)
        return broken("indexed", fmt::format("block {} row {} has id {}", block, row, id),
                      "ids are not negative; padding is num_ids or above");
      if (id >= routing.num_ids) {
        padding = true;
        continue;
      }
      if (padding)
        return broken("indexed",
                      fmt::format("block {} row {} has id {} after padding", block, row, id),
                      "valid ids of a block come first");
      if (seen[id])
        return broken("indexed", fmt::format("block {} row {} repeats id {}", block, row, id),
                      "every id may be owned by one block");
      seen[id] = true;
    }
  }
  return {};
}

Status check_m_indices(std::span<const std::int32_t> m_indices, std::int64_t experts) {
  std::vector<bool> ended(static_cast<std::size_t>(experts), false);
  std::int32_t previous = -1;
  for (std::size_t row = 0; row < m_indices.size(); ++row) {
    const std::int32_t expert = m_indices[row];
    if (expert < -1 || expert >= experts)
      return broken("m_indices", fmt::format("row {} has expert {}", row, expert),
                    fmt::format("-1 or 0 to {}", experts - 1));
    if (expert != previous && expert >= 0) {
      if (row % kPaddedRows != 0)
        return broken("m_indices", fmt::format("expert {} begins at row {}", expert, row),
                      "pad every expert to a multiple of 128 rows");
      if (ended[expert])
        return broken("m_indices", fmt::format("expert {} begins again at row {}", expert, row),
                      "rows of an expert lie together");
      ended[expert] = true;
    }
    previous = expert;
  }
  return {};
}

Status check_offsets(std::span<const std::int64_t> offsets, std::int64_t rows) {
  if (!offsets.empty() && offsets[0] != 0)
    return broken("expert_offsets", fmt::format("offset 0 is {}", offsets[0]), "it must be 0");
  for (std::size_t e = 1; e < offsets.size(); ++e) {
    if (offsets[e] < offsets[e - 1])
      return broken("expert_offsets",
                    fmt::format("offset {} is {} after {}", e, offsets[e], offsets[e - 1]),
                    "offsets do not decrease");
    if (offsets[e] > rows)
      return broken("expert_offsets",
                    fmt::format("offset {} is {} of {} rows", e, offsets[e], rows),
                    "offsets stay within the tensor");
  }
  return {};
}

Status check_masked(std::span<const std::int32_t> masked_m, std::int64_t max_m) {
  for (std::size_t e = 0; e < masked_m.size(); ++e)
    if (masked_m[e] < 0 || masked_m[e] > max_m)
      return broken("masked", fmt::format("expert {} has {} rows", e, masked_m[e]),
                    fmt::format("0 to max_m {}", max_m));
  return {};
}

Status check_routing(const cuda::DriverApi& driver, const LaunchShape& shape,
                     const GemmArguments& arguments, cuda::CUstream stream) {
  CHORD_TRY(cuda::check(driver.stream_synchronize(stream), "synchronise for checked mode"));
  return std::visit(
      [&](const auto& routing) {
        return check(driver, shape, arguments.weight.shape.experts, routing);
      },
      arguments.routing);
}

}  // namespace chord::launch
