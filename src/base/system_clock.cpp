// See system_clock.h.
#include "src/base/system_clock.h"

#include <chrono>
#include <thread>

namespace chord::base {
namespace {

template <class Source>
std::int64_t ticks() {
  const auto since_epoch = Source::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

}  // namespace

std::int64_t SystemClock::now_ns() const { return ticks<std::chrono::system_clock>(); }
std::int64_t SystemClock::steady_ns() const { return ticks<std::chrono::steady_clock>(); }
void SystemClock::sleep_ms(std::int64_t ms) const {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace chord::base
