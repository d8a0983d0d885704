// See breaker.h.
#include "cache/breaker.h"

#include <algorithm>

#include "cache/units.h"

namespace chord::cache {

bool Breaker::is_pause_over() const { return clock_.steady_ns() >= open_until_ns_; }

bool Breaker::lets_through() {
  const std::lock_guard lock(mutex_);
  if (state_ == BreakerState::closed) return true;
  const std::int64_t now = clock_.steady_ns();
  if (state_ == BreakerState::open && !is_pause_over()) return false;
  if (state_ == BreakerState::half_open && now < trial_until_ns_) return false;
  state_ = BreakerState::half_open;
  trial_until_ns_ = now + kLongestPauseMs * kMillisecond;
  return true;
}

void Breaker::succeeded() {
  const std::lock_guard lock(mutex_);
  state_ = BreakerState::closed;
  pause_ms_ = 0;
}

std::int64_t Breaker::failed() {
  const std::lock_guard lock(mutex_);
  // Several callers may have been on their way when it broke: that is one failure, not many.
  if (state_ == BreakerState::open && !is_pause_over()) return pause_ms_;
  state_ = BreakerState::open;
  pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, kLongestPauseMs);
  open_until_ns_ = clock_.steady_ns() + pause_ms_ * kMillisecond;
  ++opened_;
  return pause_ms_;
}

BreakerState Breaker::state() const {
  const std::lock_guard lock(mutex_);
  const bool is_due = state_ == BreakerState::open && is_pause_over();
  return is_due ? BreakerState::half_open : state_;
}

std::uint64_t Breaker::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

}  // namespace chord::cache
