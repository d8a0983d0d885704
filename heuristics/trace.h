// Reasons and rejected candidates, kept while a rule decides. A trace that keeps nothing formats
// nothing: tables ask the same rules thousands of times.
#pragma once

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "chord/schedule.h"

namespace chord::heuristics {

class Trace {
 public:
  enum class Keep { nothing, everything };

  explicit Trace(Keep keep) : keep_(keep == Keep::everything) {}

  bool keeps() const { return keep_; }

  template <class... Args>
  void because(const char* rule, fmt::format_string<Args...> text, Args&&... args) {
    if (keep_) reasons.push_back({rule, fmt::format(text, std::forward<Args>(args)...)});
  }

  template <class... Args>
  void reject(std::string candidate, fmt::format_string<Args...> text, Args&&... args) {
    if (keep_)
      rejected.push_back({std::move(candidate), fmt::format(text, std::forward<Args>(args)...)});
  }

  std::vector<Reason> reasons;
  std::vector<Rejected> rejected;

 private:
  bool keep_;
};

}  // namespace chord::heuristics
