// Comparison of routes and outputs with the reference.
#include "tools/examples/layer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace chord::examples {
namespace {

constexpr double kTieGap = 1e-6;         // of scores near 1 in FP32
constexpr double kMostWeightOff = 1e-5;  // relative to the sum of a token's weights

double sigmoid(double value) { return 1.0 / (1.0 + std::exp(-value)); }

// One token: its scores, and what the GPU made of them.
class Token {
 public:
  Token(std::int64_t number, const float* logits, const std::vector<float>& bias,
        const RoutingRule& rule)
      : number_(number), bias_(bias), rule_(rule) {
    for (std::size_t e = 0; e < bias.size(); ++e) scores_.push_back(sigmoid(logits[e]));
  }

  Status check(const std::int32_t* experts, const float* weights, CheckedRoutes& checked) const {
    const auto top_k = static_cast<std::size_t>(rule_.top_k);
    std::vector<bool> is_chosen(scores_.size());
    double sum = 0;
    for (std::size_t i = 0; i < top_k; ++i) {
      const std::int32_t e = experts[i];
      if (e < 0 || e >= static_cast<std::int32_t>(scores_.size()) || is_chosen[e])
        return wrong(fmt::format("expert {} in place {}: out of range or twice", e, i));
      is_chosen[e] = true;
      sum += scores_[e];
    }
    CHORD_TRY(check_choice(is_chosen, checked));
    const double factor = rule_.scaling / (rule_.normalise ? sum : 1.0);
    for (std::size_t i = 0; i < top_k; ++i) {
      const double expected = scores_[experts[i]] * factor;
      if (!(std::abs(weights[i] - expected) <= kMostWeightOff * std::max(1.0, rule_.scaling)))
        return wrong(fmt::format("weight {:.6g} of expert {}, not {:.6g}", weights[i], experts[i],
                                 expected));
      checked.routes.experts.push_back(experts[i]);
      checked.routes.weights.push_back(expected);
    }
    return {};
  }

 private:
  double choice(std::size_t e) const { return scores_[e] + bias_[e]; }

  // The worst of the chosen against the best of the others.
  Status check_choice(const std::vector<bool>& is_chosen, CheckedRoutes& checked) const {
    std::size_t worst = scores_.size(), best = scores_.size();
    for (std::size_t e = 0; e < scores_.size(); ++e) {
      std::size_t& at = is_chosen[e] ? worst : best;
      const bool replaces =
          at == scores_.size() || (is_chosen[e] ? choice(e) <= choice(at) : choice(e) > choice(at));
      if (replaces) at = e;
    }
    if (best == scores_.size()) return {};
    const double lead = choice(best) - choice(worst);
    if (lead > kTieGap)
      return wrong(fmt::format("expert {} with {:.7g} instead of expert {} with {:.7g}", worst,
                               choice(worst), best, choice(best)));
    // Exactly equal logits are no matter of precision: the lower number wins.
    if (lead == 0 && best < worst)
      return wrong(fmt::format("expert {} instead of its equal, {}", worst, best));
    if (lead > 0) ++checked.ties;
    return {};
  }

  Error wrong(std::string found) const {
    return Error{ErrorCode::internal, fmt::format("routes of token {}", number_), std::move(found),
                 ""};
  }

  std::int64_t number_;
  const std::vector<float>& bias_;
  const RoutingRule& rule_;
  std::vector<double> scores_;
};

}  // namespace

Result<CheckedRoutes> check_routes(const Chosen& chosen, const std::vector<float>& logits,
                                   const std::vector<float>& bias, const RoutingRule& rule,
                                   bool shared_slot) {
  CheckedRoutes checked;
  checked.routes.top_k = rule.top_k;
  const std::size_t experts = bias.size();
  const auto slots = static_cast<std::size_t>(chosen.slots);
  for (std::size_t token = 0; token * experts < logits.size(); ++token) {
    const Token one(static_cast<std::int64_t>(token), logits.data() + token * experts, bias, rule);
    const std::int32_t* const ids = chosen.experts.data() + token * slots;
    const float* const weights = chosen.weights.data() + token * slots;
    CHORD_TRY(one.check(ids, weights, checked));
    const bool is_shared = !shared_slot || (ids[slots - 1] == static_cast<std::int32_t>(experts) &&
                                            weights[slots - 1] == 1.0f);
    if (!is_shared)
      return Error{ErrorCode::internal, fmt::format("routes of token {}", token),
                   fmt::format("expert {} with weight {} in the shared slot", ids[slots - 1],
                               weights[slots - 1]),
                   ""};
  }
  return checked;
}

bool is_within_limits(const LayerError& error) {
  return !error.has_non_finite && error.rel_l2 <= kMostRelL2 && error.worst_row_l2 <= kMostRowL2;
}

}  // namespace chord::examples
