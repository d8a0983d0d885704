// Ends the process when the GPU does not: a kernel that hangs makes every wait on it last for ever,
// and a driver call can not be interrupted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace chord::bench {

class Watchdog {
 public:
  // `exit_code` is what the process ends with.
  explicit Watchdog(int exit_code);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From now on `what` may take this long; replaces what was watched before.
  void watch(std::string what, std::chrono::seconds limit);
  void rest();

 private:
  void run();

  const int exit_code_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace chord::bench
