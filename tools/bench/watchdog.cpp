// One sleeping thread.
#include "tools/bench/watchdog.h"

#include <cstdio>
#include <cstdlib>

namespace chord::bench {

using Clock = std::chrono::steady_clock;

Watchdog::Watchdog(int exit_code) : exit_code_(exit_code), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::watch(std::string what, std::chrono::seconds limit) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  deadline_ = Clock::now() + limit;
  changed_.notify_one();
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  deadline_ = Clock::time_point::max();
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (deadline_ == Clock::time_point::max()) {
      changed_.wait(lock);
    } else if (Clock::now() < deadline_) {
      changed_.wait_until(lock, deadline_);
    } else {
      std::fprintf(stderr, "error: %s did not end in time; the GPU hangs\n", what_.c_str());
      std::fflush(nullptr);
      std::_Exit(exit_code_);
    }
  }
}

}  // namespace chord::bench
