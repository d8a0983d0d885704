// Units of the times that a Clock gives.
#pragma once

#include <cstdint>

namespace chord::cache {

inline constexpr std::int64_t kMillisecond = 1'000'000;  // in ns

}  // namespace chord::cache
