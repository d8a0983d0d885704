// A circuit breaker: a remote store that failed is left alone for a while, then tried again by one
// caller; if that works it is back, else it is left alone for twice as long (at most a minute). So
// a dead store costs a job one deadline now and then, not one a look-up.
#pragma once

#include <cstdint>
#include <mutex>

#include "chord/cache_events.h"
#include "chord/platform.h"

namespace chord::cache {

class Breaker {
 public:
  static constexpr std::int64_t kFirstPauseMs = 5'000;
  static constexpr std::int64_t kLongestPauseMs = 60'000;

  explicit Breaker(const Clock& clock) : clock_(clock) {}

  // Whether the store may be asked now. True obliges the caller to report how it went; while one
  // caller tries an open store, the others are told no.
  bool lets_through();
  void succeeded();
  // For how long the store is left alone now.
  std::int64_t failed();

  // As it would answer now, without letting anybody through.
  BreakerState state() const;
  std::uint64_t opened() const;

 private:
  bool is_pause_over() const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  BreakerState state_ = BreakerState::closed;
  std::int64_t pause_ms_ = 0;
  std::int64_t open_until_ns_ = 0;
  std::int64_t trial_until_ns_ = 0;  // a caller that never reports must not keep the trial
  std::uint64_t opened_ = 0;
};

}  // namespace chord::cache
