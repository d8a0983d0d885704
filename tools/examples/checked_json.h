// JSON that others wrote, read without surprises: no exception leaves, nothing nests deeply, and a
// key that stands twice in one object is refused instead of the last one winning.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "chord/status.h"

namespace chord::examples {

// `what` names the text in errors: "header of /models/a.safetensors".
Result<nlohmann::json> parse_object(std::string_view text, const std::string& what);

// Whole numbers from 0 to 2^63 - 1; empty for anything else.
std::optional<std::int64_t> whole_number(const nlohmann::json& value);

// At most 80 characters, printable ASCII: for showing what was found.
std::string shown(const std::string& text);
std::string shown(const nlohmann::json& value);

}  // namespace chord::examples
