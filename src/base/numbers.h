// Numbers as people write them in variables and flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace chord::base {

// Decimal digits only; empty for anything else and for what does not fit.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

// Bytes: digits with K, M, G or T behind them (powers of 1024) or nothing.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace chord::base
