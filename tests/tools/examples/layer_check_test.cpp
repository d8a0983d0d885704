// What a GPU may choose, and what is a mistake.
#include "tools/examples/layer_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/examples/files.h"

namespace chord::examples {
namespace {

// Sigmoid scores 0.5, 0.75 and 0.25.
const std::vector<float> kLogits{0.0f, std::log(3.0f), -std::log(3.0f)};
const std::vector<float> kNoBias{0, 0, 0};
const RoutingRule kRule{2, true, 2.0};

Chosen chosen(std::vector<std::int32_t> experts, std::vector<float> weights) {
  const auto slots = static_cast<std::int64_t>(experts.size());
  return {std::move(experts), std::move(weights), slots};
}

std::string refusal(const Chosen& made, const std::vector<float>& logits = kLogits,
                    bool shared_slot = false) {
  return message_of(check_routes(made, logits, kNoBias, kRule, shared_slot));
}

TEST(CheckedRoutes, AreThoseOfTheGpuWithExactWeights) {
  const auto checked =
      check_routes(chosen({0, 1}, {0.8000001f, 1.2f}), kLogits, kNoBias, kRule, false);
  ASSERT_TRUE(checked.ok()) << message_of(checked);
  EXPECT_EQ(checked->routes.experts, (std::vector<std::int32_t>{0, 1}));
  EXPECT_NEAR(checked->routes.weights[0], 0.8, 1e-7);
  EXPECT_EQ(checked->ties, 0);
}

TEST(CheckedRoutes, RefuseAnExpertThatIsNotAmongTheBest) {
  const std::string message = refusal(chosen({1, 2}, {1.5f, 0.5f}));
  EXPECT_TRUE(has(message, "token 0")) << message;
  EXPECT_TRUE(has(message, "instead of expert 0 with 0.5")) << message;
}

TEST(CheckedRoutes, RefuseAWrongWeight) {
  EXPECT_TRUE(has(refusal(chosen({1, 0}, {1.2f, 0.81f})), "of expert 0, not 0.8"));
  EXPECT_TRUE(has(refusal(chosen({1, 0}, {1.2f, NAN})), "of expert 0"));
}

TEST(CheckedRoutes, RefuseAnExpertTwiceOrOutOfRange) {
  EXPECT_TRUE(has(refusal(chosen({1, 1}, {1, 1})), "expert 1 in place 1"));
  EXPECT_TRUE(has(refusal(chosen({1, -1}, {1, 1})), "expert -1 in place 1"));
  EXPECT_TRUE(has(refusal(chosen({3, 1}, {1, 1})), "expert 3 in place 0"));
}

TEST(CheckedRoutes, ChooseByTheBias) {
  const auto checked =
      check_routes(chosen({2, 1}, {0.5f, 1.5f}), kLogits, {0, 0, 0.6f}, kRule, false);
  EXPECT_TRUE(checked.ok()) << message_of(checked);
}

TEST(CheckedRoutes, LeaveEitherOfTwoThatFp32CanNotTellApart) {
  const std::vector<float> logits{2.0f, std::nextafter(1.0f, 2.0f), 1.0f};
  const double a = 1 / (1 + std::exp(-2.0)), b = 1 / (1 + std::exp(-1.0));
  const auto first = static_cast<float>(2 * a / (a + b)), second = static_cast<float>(2 - first);
  const auto checked = check_routes(chosen({0, 2}, {first, second}), logits, kNoBias, kRule, false);
  ASSERT_TRUE(checked.ok()) << message_of(checked);
  EXPECT_EQ(checked->ties, 1);
}

TEST(CheckedRoutes, WantTheLowerNumberOfTwoThatAreEqual) {
  const std::vector<float> logits{1.0f, 1.0f, 1.0f};
  EXPECT_EQ(refusal(chosen({0, 1}, {1, 1}), logits), "");
  EXPECT_TRUE(has(refusal(chosen({0, 2}, {1, 1}), logits), "expert 2 instead of its equal, 1"));
}

TEST(CheckedRoutes, WantTheSharedExpertLast) {
  EXPECT_EQ(refusal(chosen({1, 0, 3}, {1.2f, 0.8f, 1}), kLogits, true), "");
  EXPECT_TRUE(has(refusal(chosen({1, 0, 2}, {1.2f, 0.8f, 1}), kLogits, true), "shared slot"));
  EXPECT_TRUE(has(refusal(chosen({1, 0, 3}, {1.2f, 0.8f, 2}), kLogits, true), "shared slot"));
}

TEST(Limits, HoldOverAllAndPerRow) {
  EXPECT_TRUE(is_within_limits({.rel_l2 = 5e-3, .worst_row_l2 = 1e-2}));
  EXPECT_FALSE(is_within_limits({.rel_l2 = 7e-3, .worst_row_l2 = 1e-2}));
  EXPECT_FALSE(is_within_limits({.rel_l2 = 5e-3, .worst_row_l2 = 2e-2}));
  EXPECT_FALSE(is_within_limits({.rel_l2 = NAN}));
  EXPECT_FALSE(is_within_limits({.has_non_finite = true}));
  EXPECT_FALSE(is_within_limits(layer_error({NAN}, {0}, 1)));
}

}  // namespace
}  // namespace chord::examples
