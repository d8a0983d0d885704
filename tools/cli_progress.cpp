// The progress bar and its plain form.
#include "tools/cli_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace chord::tools {
namespace {

constexpr int kBarCells = 24;

std::string bar_of(std::int64_t done, std::int64_t total) {
  const std::int64_t part = total > 0 ? kBarCells * done / total : 0;
  const std::int64_t full = std::clamp<std::int64_t>(part, 0, kBarCells);
  return fmt::format("[{:#<{}}{:.<{}}]", "", full, "", kBarCells - full);
}

}  // namespace

Progress::Progress(std::FILE* stream, bool is_terminal, int columns)
    : stream_(stream), is_terminal_(is_terminal), columns_(columns) {}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  clear();
}

void Progress::step(std::int64_t done, std::int64_t total, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!is_terminal_) {
    fmt::print(stream_, "{}/{} {}\n", done, total, text);
    std::fflush(stream_);
    return;
  }
  // Steps of several threads may arrive out of order; the bar never runs backwards.
  furthest_ = std::max(furthest_, done);
  std::string line = fmt::format("{} {}/{} {}", bar_of(furthest_, total), furthest_, total, text);
  if (static_cast<int>(line.size()) >= columns_)
    line.resize(static_cast<std::size_t>(std::max(columns_ - 1, 0)));
  clear();
  std::fputs(line.c_str(), stream_);
  std::fflush(stream_);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace chord::tools
