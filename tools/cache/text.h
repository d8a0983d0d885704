// How the commands of chord-cache spell times, sizes and tables.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/inspect.h"

namespace chord::tools {

using Json = nlohmann::ordered_json;

std::string utc_text(std::int64_t ns);                            // "2026-03-01T12:00:00Z"
std::string age_text(std::int64_t then_ns, std::int64_t now_ns);  // "5 min"; the future is "0 s"
double age_s(std::int64_t then_ns, std::int64_t now_ns);
std::string size_text(std::uint64_t bytes);  // "98.5 MiB"

// Files hold what others wrote: a control character must not move the terminal's cursor.
std::string one_line(std::string_view text);
// null for an empty text.
Json json_or_null(const std::string& text);

// Columns as wide as their widest cell; the last one is not padded.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

// The facts that every command tells of an entry.
Json json_of(const cache::EntrySummary& entry, std::int64_t now_ns);

}  // namespace chord::tools
