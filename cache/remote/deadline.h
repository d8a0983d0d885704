// A point in time by which a call to another machine has to be over, however many steps it takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace chord::cache {

class Deadline {
 public:
  explicit Deadline(std::int64_t ms)
      : ms_(std::clamp<std::int64_t>(ms, 0, kLongestMs)),
        end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms_)) {}

  std::int64_t ms() const { return ms_; }  // as it was given
  std::chrono::steady_clock::time_point end() const { return end_; }
  // Rounded up, so that a wait of so long does not end a moment early; 0 when it is over.
  int left_ms() const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  bool is_over() const { return left_ms() == 0; }

 private:
  static constexpr std::int64_t kLongestMs = std::int64_t{24} * 3600 * 1000;
  std::int64_t ms_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace chord::cache
