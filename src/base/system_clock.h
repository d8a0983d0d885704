// The machine's clock. Tests use one of their own.
#pragma once

#include "chord/platform.h"

namespace chord::base {

class SystemClock final : public Clock {
 public:
  std::int64_t now_ns() const override;
  std::int64_t steady_ns() const override;
  void sleep_ms(std::int64_t ms) const override;
};

}  // namespace chord::base
