// Tables: where along the rows the answer changes. Found by bisection inside pieces in which the
// answer takes every value once, never by asking every row.
#pragma once

#include <cstdint>
#include <vector>

#include "heuristics/answer.h"

namespace chord::heuristics {

// First rows of pieces, ascending, beginning with 1. A piece ends where the next begins.
using Pieces = std::vector<std::int64_t>;

inline std::int64_t last_of_piece(const Pieces& pieces, std::size_t index) {
  return index + 1 < pieces.size() ? pieces[index + 1] - 1 : kMaxTableRows;
}

// Cuts every piece wherever key(rows) changes; inside a piece equal keys have to be neighbours.
template <class Key>
Pieces cut(const Pieces& pieces, Key key) {
  Pieces finer;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::int64_t last = last_of_piece(pieces, i);
    std::int64_t first = pieces[i];
    finer.push_back(first);
    auto here = key(first);
    const auto end = key(last);
    while (!(here == end)) {
      std::int64_t same = first;  // key(same) == here, key(other) differs
      std::int64_t other = last;
      while (other - same > 1) {
        const std::int64_t middle = same + (other - same) / 2;
        (key(middle) == here ? same : other) = middle;
      }
      first = other;
      finer.push_back(first);
      here = key(first);
    }
  }
  return finer;
}

// Pieces of (0, 2^30] in which the answer takes every value once.
Result<Pieces> monotone_pieces(const Situation& situation, const GemmDescriptor& descriptor);

Result<ScheduleTable> table(const Situation& situation, const GemmDescriptor& descriptor);

}  // namespace chord::heuristics
