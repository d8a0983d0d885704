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

  explicit Trace(Keep keep) : keep_(keep == Keep::everything) {
    if (!keep_) return;
    reasons.reserve(8);
    rejected.reserve(4);
  }

  bool keeps() const { return keep_; }

  template <class... Args>
  void because(const char* rule, fmt::format_string<Args...> text, Args&&... args) {
    if (keep_) reasons.push_back({rule, fmt::format(text, std::forward<Args>(args)...)});
  }

  // candidate() names what is rejected.
  template <class Candidate, class... Args>
  void reject(const Candidate& candidate, fmt::format_string<Args...> text, Args&&... args) {
    if (keep_) rejected.push_back({candidate(), fmt::format(text, std::forward<Args>(args)...)});
  }

  std::vector<Reason> reasons;
  std::vector<Rejected> rejected;

 private:
  bool keep_;
};

}  // namespace chord::heuristics
