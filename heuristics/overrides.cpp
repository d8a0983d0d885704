// Overrides from the environment and from "name=value". The environment itself is read by the
// caller; nothing here knows where a value comes from but its variable's name.
#include "chord/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "chord/schedule.h"
#include "heuristics/pins.h"

namespace chord {
namespace {

using heuristics::kKernelPins;
using heuristics::kNamedPins;
using heuristics::kPublishedPins;
using heuristics::NamedPin;
using heuristics::PinField;

Error malformed(const PinField& pin, std::string_view value) {
  const bool empty = value.empty();
  return Error{ErrorCode::invalid_argument, fmt::format("{}={}", pin.variable, value.substr(0, 64)),
               empty ? "the value is empty"
                     : fmt::format("the value is not {}", heuristics::describe(pin.range)),
               fmt::format("decimal digits only: {}{}", heuristics::describe(pin.range),
                           empty ? "; unset the variable to let the solver choose" : "")};
}

Result<int> parse_pin(const PinField& pin, std::string_view value) {
  const bool digits =
      !value.empty() && value.size() <= 9 &&
      std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return malformed(pin, value);
  int number = 0;
  for (const char c : value) number = number * 10 + (c - '0');
  if (!pin.range.holds(number)) return malformed(pin, value);
  return number;
}

Status set_named_field(Overrides& overrides, std::string_view name, std::string_view value) {
  for (const PinField& pin : kKernelPins) {
    if (name != pin.field) continue;
    CHORD_TRY(overrides.*pin.member, parse_pin(pin, value));
    return {};
  }
  for (const NamedPin& pin : kNamedPins)
    if (name == pin.field) return pin.parse(overrides, value);
  std::string known;
  for (const PinField& pin : kKernelPins) known += fmt::format("{}, ", pin.field);
  for (const NamedPin& pin : kNamedPins)
    known += fmt::format("{}{}", &pin == &kNamedPins[0] ? "" : ", ", pin.field);
  return Error{ErrorCode::invalid_argument, fmt::format("kernel field '{}'", name.substr(0, 64)),
               "no such field", "one of: " + known};
}

}  // namespace

Result<Overrides> parse_overrides(const EnvironmentLookup& environment) {
  Overrides overrides;
  for (const PinField& pin : kPublishedPins) {
    const std::optional<std::string> value = environment(pin.variable);
    if (!value) continue;
    CHORD_TRY(overrides.*pin.member, parse_pin(pin, *value));
  }
  return overrides;
}

Status set_kernel_field(Overrides& overrides, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("kernel field '{}'", assignment.substr(0, 64)), "there is no '='",
                 "write NAME=VALUE, for example tile_n=256"};
  return set_named_field(overrides, assignment.substr(0, equals), assignment.substr(equals + 1));
}

namespace heuristics {

std::string describe(const PinRange& range) {
  if (range.step == 1) return fmt::format("a whole number in {}..{}", range.first, range.last);
  return fmt::format("a multiple of {} in {}..{}", range.step, range.first, range.last);
}

Status check_overrides(const Overrides& overrides) {
  const auto check = [&overrides](const PinField& pin) -> Status {
    const std::optional<int>& value = overrides.*pin.member;
    if (value && !pin.range.holds(*value)) return malformed(pin, std::to_string(*value));
    return {};
  };
  for (const PinField& pin : kPublishedPins) {
    CHORD_TRY(check(pin));
  }
  for (const PinField& pin : kKernelPins) {
    CHORD_TRY(check(pin));
  }
  return {};
}

bool pins_published(const Overrides& overrides) {
  return std::any_of(kPublishedPins.begin(), kPublishedPins.end(),
                     [&](const PinField& pin) { return (overrides.*pin.member).has_value(); });
}

std::string pinned_text(const Overrides& overrides) {
  std::string text;
  const auto add = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  };
  const auto add_field = [&](const PinField& pin) {
    if (const auto& value = overrides.*pin.member) add(pin.variable, std::to_string(*value));
  };
  for (const PinField& pin : kPublishedPins) add_field(pin);
  for (const PinField& pin : kKernelPins) add_field(pin);
  for (const NamedPin& pin : kNamedPins)
    if (const std::string value = pin.text(overrides); !value.empty()) add(pin.field, value);
  return text;
}

Overrides merged(const Overrides& first, const Overrides& second) {
  Overrides all = first;
  const auto fill = [&](const PinField& pin) {
    if (!(all.*pin.member)) all.*pin.member = second.*pin.member;
  };
  for (const PinField& pin : kPublishedPins) fill(pin);
  for (const PinField& pin : kKernelPins) fill(pin);
  for (const NamedPin& pin : kNamedPins) pin.fill(all, second);
  return all;
}

}  // namespace heuristics
}  // namespace chord
