// See numbers.h.
#include "src/base/numbers.h"

#include <charconv>
#include <limits>

namespace chord::base {

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t unit = 1;
  const std::size_t power = text.empty() ? text.npos : kUnits.find(text.back());
  if (power != text.npos) {
    unit = std::uint64_t{1} << (10 * (power + 1));
    text.remove_suffix(1);
  }
  const std::optional<std::uint64_t> number = parse_whole_number(text);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return *number * unit;
}

}  // namespace chord::base
