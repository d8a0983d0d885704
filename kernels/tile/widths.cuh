// The compiled widths of a schedule: code for a tile is chosen by its rows, at run time.
#pragma once

#include "chord/abi/schedule.h"

namespace chord::device {

// Calls visit.operator()<Width>() for the narrowest width that takes `rows`.
template <abi::Schedule S, abi::i32 Narrower = 0, class Visit>
inline void with_width_of(abi::i32 rows, const Visit& visit) {
  constexpr abi::i32 kWidth = S.tile_m - Narrower * S.width_step;
  if constexpr (Narrower + 1 < S.widths) {
    if (rows > kWidth - S.width_step)
      visit.template operator()<kWidth>();
    else
      with_width_of<S, Narrower + 1>(rows, visit);
  } else {
    visit.template operator()<kWidth>();
  }
}

}  // namespace chord::device
