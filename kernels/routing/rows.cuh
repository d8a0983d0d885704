// From a position of the routing to a row: where an activation comes from and where its output
// goes. One set of functions per routing kind; plain functions of the parameters, so that g++
// compiles them.
#pragma once

#include "chord/abi/params.h"
#include "chord/abi/problem.h"

namespace chord::device {

using abi::ContiguousSpelling;
using abi::GemmParams;
using abi::i32;
using abi::i64;
using abi::RoutingKind;

inline constexpr i32 kPaddedBlock = 128;  // m_indices: rows that every expert is padded to

// A row nobody owns: not loaded, not stored.
inline constexpr i32 kNoRow = -1;

struct RowPair {
  i32 source = kNoRow;  // row of x
  i32 output = kNoRow;  // row of out
};

// Whether segments are runs of equal-expert blocks (indexed, m_indices) or counts per expert.
template <RoutingKind Kind>
inline bool routes_by_blocks(const GemmParams& p) {
  if constexpr (Kind == RoutingKind::indexed) return true;
  if constexpr (Kind == RoutingKind::grouped_masked) return false;
  return p.spelling == ContiguousSpelling::m_indices;
}

// --- counts per expert ---------------------------------------------------------------------------

struct ExpertRows {
  i64 first = 0;
  i32 rows = 0;
};

template <RoutingKind Kind>
inline ExpertRows rows_of_expert(const GemmParams& p, i32 expert) {
  if constexpr (Kind == RoutingKind::grouped_masked) {
    const i64 rows = static_cast<const i32*>(p.groups)[expert];
    return {expert * p.max_m, static_cast<i32>(abi::max_of(0, abi::min_of(rows, p.max_m)))};
  } else {
    i64 begin, end;
    if (p.spelling == ContiguousSpelling::offsets64) {
      begin = static_cast<const i64*>(p.groups)[expert];
      end = static_cast<const i64*>(p.groups)[expert + 1];
    } else {
      begin = static_cast<const i32*>(p.groups)[expert];
      end = static_cast<const i32*>(p.groups)[expert + 1];
    }
    begin = abi::max_of(0, abi::min_of(begin, p.rows));
    end = abi::max_of(begin, abi::min_of(end, p.rows));
    return {begin, static_cast<i32>(end - begin)};
  }
}

// --- blocks --------------------------------------------------------------------------------------

// Rows of one block and how many positions hold blocks; block_m is the schedule's.
template <RoutingKind Kind>
constexpr i32 rows_of_block(i32 block_m) {
  return Kind == RoutingKind::indexed ? block_m : kPaddedBlock;
}

template <RoutingKind Kind>
inline i64 positions(const GemmParams& p) {
  if constexpr (Kind == RoutingKind::indexed)
    return abi::max_of(0, abi::min_of(*p.num_tokens_padded, p.rows));
  else
    return p.rows;
}

template <RoutingKind Kind>
inline i32 expert_of_block(const GemmParams& p, i64 block) {
  if constexpr (Kind == RoutingKind::indexed) return p.expert_ids[block];
  return static_cast<const i32*>(p.groups)[block * kPaddedBlock];
}

inline bool is_expert(const GemmParams& p, i32 expert) { return expert >= 0 && expert < p.experts; }

// Whether a raw entry of sorted_ids or m_indices is a row of the segment's expert.
template <RoutingKind Kind>
inline bool is_owned(const GemmParams& p, i32 entry, i32 expert) {
  if constexpr (Kind == RoutingKind::indexed) return entry >= 0 && entry < p.num_ids;
  return entry == expert;
}

template <RoutingKind Kind>
inline const i32* entries(const GemmParams& p) {
  if constexpr (Kind == RoutingKind::indexed) return p.sorted_ids;
  return static_cast<const i32*>(p.groups);
}

// --- rows of a tile ------------------------------------------------------------------------------

// The raw entry at a position, or the position itself where there are no entries.
template <RoutingKind Kind>
inline i32 load_entry(const GemmParams& p, i64 position) {
  if (routes_by_blocks<Kind>(p)) return entries<Kind>(p)[position];
  return static_cast<i32>(position);
}

template <RoutingKind Kind>
inline RowPair row_of(const GemmParams& p, i64 position, i32 entry, i32 expert) {
  if constexpr (Kind == RoutingKind::indexed) {
    if (!is_owned<Kind>(p, entry, expert)) return {};
    return {static_cast<i32>(static_cast<abi::u32>(entry) / static_cast<abi::u32>(p.top_k)), entry};
  } else {
    if (routes_by_blocks<Kind>(p) && !is_owned<Kind>(p, entry, expert)) return {};
    return {static_cast<i32>(position), static_cast<i32>(position)};
  }
}

}  // namespace chord::device
