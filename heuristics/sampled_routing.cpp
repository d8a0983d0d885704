// Builds the brackets in one pass: a draw changes the count of one expert, and so the block sums by
// one difference per candidate. Must not know profiles or descriptors.
#include "heuristics/sampled_routing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>

namespace chord::heuristics {
namespace {

constexpr int kCandidates = kLargestSampledBlock / 8;
using PerCandidate = std::array<std::int64_t, kCandidates>;

constexpr int candidate_block(std::size_t index) { return 8 * (static_cast<int>(index) + 1); }

// Blocks of one expert with `count` rows, for every candidate. The published arithmetic is
// ceil((count * 1.1) / BM) in double.
PerCandidate blocks_of(std::int64_t count) {
  PerCandidate blocks{};
  const double padded = static_cast<double>(count) * 1.1;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = static_cast<std::int64_t>(std::ceil(padded / candidate_block(i)));
  return blocks;
}

// Draws experts as the published sampler does: masked to the smallest all-ones mask, rejected
// above.
class Sampler {
 public:
  explicit Sampler(std::int64_t experts)
      : last_(static_cast<std::uint32_t>(experts - 1)),
        mask_(last_ == 0 ? 0 : ~std::uint32_t{0} >> std::countl_zero(last_)) {}

  std::uint32_t draw() {
    std::uint32_t expert = generator_() & mask_;
    while (expert > last_) expert = generator_() & mask_;
    return expert;
  }

 private:
  std::uint32_t last_;
  std::uint32_t mask_;
  std::mt19937 generator_{0};
};

std::vector<Bracket> build_brackets(std::int64_t experts) {
  Sampler sampler(experts);
  std::vector<std::int32_t> counts(static_cast<std::size_t>(experts), 0);
  std::vector<PerCandidate> blocks{blocks_of(0)};  // by count, grown as counts grow
  PerCandidate sums{};
  std::vector<Bracket> brackets;
  for (std::int64_t rows = 1; rows < kSampledTokensPerExpert * experts; ++rows) {
    const std::size_t count = static_cast<std::size_t>(++counts[sampler.draw()]);
    if (count == blocks.size()) blocks.push_back(blocks_of(static_cast<std::int64_t>(count)));
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += blocks[count][i] - blocks[count - 1][i];
    const auto first_minimum = std::min_element(sums.begin(), sums.end()) - sums.begin();
    const int best = candidate_block(static_cast<std::size_t>(first_minimum));
    if (brackets.empty() || brackets.back().block_m != best) brackets.push_back({rows, best});
  }
  return brackets;
}

struct Memo {
  std::shared_mutex mutex;
  std::map<std::int64_t, std::unique_ptr<const std::vector<Bracket>>> by_experts;
};

Memo& memo() {
  static Memo& instance = *new Memo;  // never destroyed: threads may plan while the process exits
  return instance;
}

}  // namespace

const std::vector<Bracket>& sampled_brackets(std::int64_t experts) {
  assert(experts >= 1);
  {
    const std::shared_lock lock(memo().mutex);
    const auto found = memo().by_experts.find(experts);
    if (found != memo().by_experts.end()) return *found->second;
  }
  // Built outside the lock: two threads may both build the same brackets, one of them is kept.
  auto built = std::make_unique<const std::vector<Bracket>>(build_brackets(experts));
  const std::unique_lock lock(memo().mutex);
  return *memo().by_experts.emplace(experts, std::move(built)).first->second;
}

int sampled_block_m(std::int64_t experts, std::int64_t rows) {
  const auto& brackets = sampled_brackets(experts);
  const auto after = std::upper_bound(
      brackets.begin(), brackets.end(), rows,
      [](std::int64_t value, const Bracket& bracket) { return value < bracket.first_rows; });
  assert(after != brackets.begin());
  return std::prev(after)->block_m;
}

}  // namespace chord::heuristics
