// A log that remembers, and a clock that the test moves.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "chord/platform.h"

namespace chord::testing {

class LogRecorder {
 public:
  LogSink sink() {
    return [lines = lines_](LogLevel level, std::string_view message) {
      std::lock_guard lock(lines->mutex);
      lines->all.emplace_back(level, message);
    };
  }

  std::vector<std::string> at(LogLevel level) const {
    std::lock_guard lock(lines_->mutex);
    std::vector<std::string> messages;
    for (const auto& [of_message, message] : lines_->all)
      if (of_message == level) messages.push_back(message);
    return messages;
  }
  std::vector<std::string> warnings() const { return at(LogLevel::warn); }

  bool has(LogLevel level, std::string_view part) const {
    const std::vector<std::string> messages = at(level);
    return std::any_of(messages.begin(), messages.end(), [&](const std::string& message) {
      return message.find(part) != std::string::npos;
    });
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::vector<std::pair<LogLevel, std::string>> all;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

// Stands still unless moved; a sleep moves it.
class FakeClock final : public Clock {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;

  std::int64_t now_ns() const override { return now_; }
  std::int64_t steady_ns() const override { return now_; }
  void sleep_ms(std::int64_t ms) const override { now_ += ms * 1'000'000; }
  void advance_s(std::int64_t seconds) { now_ += seconds * kSecond; }

 private:
  mutable std::atomic<std::int64_t> now_{std::int64_t{1'800'000'000} * kSecond};
};

}  // namespace chord::testing
