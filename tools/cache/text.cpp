// See text.h.
#include "tools/cache/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace chord::tools {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

std::string utc_text(std::int64_t ns) {
  const std::time_t seconds = static_cast<std::time_t>(ns / kSecond);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

double age_s(std::int64_t then_ns, std::int64_t now_ns) {
  return static_cast<double>(std::max<std::int64_t>(0, now_ns - then_ns)) / kSecond;
}

std::string age_text(std::int64_t then_ns, std::int64_t now_ns) {
  const auto seconds = static_cast<std::int64_t>(age_s(then_ns, now_ns));
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes);
  const char* unit = "KMGTPE";
  for (size /= 1024; size >= 1024; size /= 1024) ++unit;
  return fmt::format("{:.1f} {}iB", size, *unit);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

Json json_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  return text;
}

Json json_of(const cache::EntrySummary& entry, std::int64_t now_ns) {
  Json json{{"key", entry.key},
            {"bytes", entry.bytes},
            {"last_used", utc_text(entry.last_use_ns)},
            {"age_s", age_s(entry.last_use_ns, now_ns)}};
  if (!entry.is_good()) {
    json["problem"] = {{"reason", name(entry.problem)}, {"found", entry.problem_text}};
    return json;
  }
  json["arch"] = entry.arch;
  json["compiler"] = entry.compiler;
  json["compile_ms"] = entry.compile_ms;
  json["kernel"] = entry.kernel_name;
  json["signer"] = json_or_null(entry.signer);
  return json;
}

}  // namespace chord::tools
