// Progress of a long run: one bar that redraws itself on a terminal, one line per step elsewhere.
// Safe from several threads. Writes to standard output, because standard error is for errors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace chord::tools {

class Progress {
 public:
  Progress(std::FILE* stream, bool is_terminal, int columns);
  ~Progress();  // leaves the bar's line clean

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::int64_t done, std::int64_t total, const std::string& text);

 private:
  void clear();

  std::mutex mutex_;
  std::FILE* stream_;
  bool is_terminal_;
  int columns_;
  bool drawn_ = false;
  std::int64_t furthest_ = 0;
};

}  // namespace chord::tools
