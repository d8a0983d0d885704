// The reference against numbers that can be worked out by hand.
#include "tools/examples/layer_reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/examples/files.h"
#include "tools/examples/bf16.h"
#include "tools/examples/synthetic_checkpoint.h"
#include "tools/examples/synthetic_values.h"

namespace chord::examples {
namespace {

constexpr std::int64_t kSize = 32;
constexpr double kSiluOfOne = 0.73105857863000487;  // 1 / (1 + 1/e)

// Diagonal matrices of 32 x 32: gate = x, up = 2x, down = factor(slot) * x.
class Diagonal final : public LayerSource {
 public:
  explicit Diagonal(LayerShape shape) : LayerSource(shape) {}
  Result<Router> router() const override { return Router{}; }

  std::uint16_t down_scale = bf16_of_float(0.5f);

 private:
  Status read(std::int64_t slot, Projection projection, const Part& part, std::uint32_t* words,
              std::uint16_t* scales) const override {
    const auto down_code = static_cast<std::uint32_t>(9 + slot);
    const std::uint32_t code = projection == Projection::gate ? 9
                               : projection == Projection::up ? 10
                                                              : down_code;
    for (std::int64_t row = 0; row < part.rows; ++row) {
      for (int i = 0; i < 4; ++i) words[row * 4 + i] = 0x88888888;
      const int shift = static_cast<int>(4 * (row % 8));
      words[row * 4 + row / 8] ^= (8 ^ code) << shift;
      scales[row] = projection == Projection::down ? down_scale : bf16_of_float(1.0f);
    }
    return {};
  }
};

LayerShape small_shape(std::int64_t experts) {
  return {.hidden = kSize,
          .intermediate = kSize,
          .full_intermediate = kSize,
          .routed = experts,
          .all_experts = experts};
}

std::vector<std::uint16_t> rows_of(std::initializer_list<float> values) {
  std::vector<std::uint16_t> x;
  for (const float value : values) x.insert(x.end(), kSize, bf16_of_float(value));
  return x;
}

TEST(Reference, OneExpertOfDiagonalWeights) {
  const Diagonal layer(small_shape(1));
  const Routes routes{1, {0, 0}, {1.0, 3.0}};
  const auto y = reference_layer(layer, rows_of({1.0f, -2.0f}), routes, {0, 1}, 1);
  ASSERT_TRUE(y.ok()) << message_of(y);
  ASSERT_EQ(y->size(), 2u * kSize);
  // 0.5 * silu(x) * 2x
  EXPECT_NEAR((*y)[0], kSiluOfOne, 1e-12);
  EXPECT_NEAR((*y)[31], kSiluOfOne, 1e-12);
  EXPECT_NEAR((*y)[32], 3.0 * (-2.0 / (1 + std::exp(2.0))) * -2.0, 1e-12);
}

TEST(Reference, AddsTheExpertsOfATokenByTheirWeights) {
  const Diagonal layer(small_shape(3));
  const Routes routes{2, {2, 0}, {0.25, 0.75}};
  const auto y = reference_layer(layer, rows_of({1.0f}), routes, {0}, 2);
  ASSERT_TRUE(y.ok()) << message_of(y);
  // Down is 0.5 for expert 0 and 1.5 for expert 2.
  EXPECT_NEAR((*y)[5], kSiluOfOne * (0.25 * 3 + 0.75), 1e-12);
}

TEST(Reference, LeavesOutTheExpertsOfOtherRanks) {
  LayerShape shape = small_shape(2);
  shape.first_expert = 4;
  shape.all_experts = 8;
  const Diagonal layer(shape);
  const Routes routes{3, {3, 5, 6}, {10.0, 0.5, 100.0}};
  const auto y = reference_layer(layer, rows_of({1.0f}), routes, {0}, 1);
  ASSERT_TRUE(y.ok()) << message_of(y);
  // Expert 5 is slot 1: down is 1.
  EXPECT_NEAR((*y)[0], kSiluOfOne * 0.5 * 2, 1e-12);
}

TEST(Reference, GivesEveryTokenTheSharedExpert) {
  LayerShape shape = small_shape(1);
  shape.shared_slot = true;
  const Diagonal layer(shape);
  const Routes routes{1, {0}, {0.5}};
  const auto y = reference_layer(layer, rows_of({1.0f}), routes, {0}, 1);
  ASSERT_TRUE(y.ok()) << message_of(y);
  EXPECT_NEAR((*y)[0], kSiluOfOne * (0.5 + 2), 1e-12);
}

TEST(Reference, AnswersTheTokensOfTheSample) {
  const Diagonal layer(small_shape(1));
  const Routes routes{1, {0, 0, 0}, {1.0, 1.0, 2.0}};
  const auto y = reference_layer(layer, rows_of({5.0f, 5.0f, 1.0f}), routes, {2}, 1);
  ASSERT_TRUE(y.ok()) << message_of(y);
  ASSERT_EQ(y->size(), static_cast<std::size_t>(kSize));
  EXPECT_NEAR((*y)[0], 2 * kSiluOfOne, 1e-12);
}

TEST(Reference, RoundsWeightsToBf16) {
  Diagonal layer(small_shape(7));
  layer.down_scale = 0x3f81;  // 1.0078125; times 7 is 7.0546875, in BF16 7.0625
  const Routes routes{1, {6}, {1.0}};
  const auto y = reference_layer(layer, rows_of({1.0f}), routes, {0}, 1);
  ASSERT_TRUE(y.ok()) << message_of(y);
  EXPECT_NEAR((*y)[0], kSiluOfOne * 2 * 7.0625, 1e-12);
}

TEST(Reference, DoesNotDependOnThreads) {
  const SyntheticOptions options{.hidden = 128, .intermediate = 64, .experts = 8, .top_k = 3};
  const auto layer = SyntheticLayer::make(options, 1, {});
  const auto x = synthetic_activations(3, 5 * 128);
  const Routes routes = reference_routes(reference_logits(x, *(*layer)->router(), 128),
                                         (*layer)->router()->bias, {3, true, 1.0});
  const std::vector<std::int64_t> sample{0, 1, 2, 3, 4};
  EXPECT_EQ(*reference_layer(**layer, x, routes, sample, 1),
            *reference_layer(**layer, x, routes, sample, 4));
}

// The ranks of a deployment add up to the whole layer.
void expect_sum_of_ranks(ShardAxis axis) {
  const SyntheticOptions options{.hidden = 128, .intermediate = 128, .experts = 4, .top_k = 2};
  const auto whole = SyntheticLayer::make(options, 1, {});
  const auto x = synthetic_activations(3, 3 * 128);
  const Routes routes = reference_routes(reference_logits(x, *(*whole)->router(), 128),
                                         (*whole)->router()->bias, {2, true, 2.827});
  const auto expected = reference_layer(**whole, x, routes, {0, 1, 2}, 1);
  std::vector<double> sum(expected->size(), 0.0);
  for (int rank = 0; rank < 2; ++rank) {
    const auto part = SyntheticLayer::make(options, 1, {.shard = {axis, 2}, .rank = rank});
    const auto y = reference_layer(**part, x, routes, {0, 1, 2}, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += (*y)[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], (*expected)[i], 1e-9) << i;
}

TEST(Reference, ExpertRanksAddUp) { expect_sum_of_ranks(ShardAxis::expert); }
TEST(Reference, TensorRanksAddUp) { expect_sum_of_ranks(ShardAxis::tensor); }

TEST(Routing, NormalisesAndScalesTheScoresOfTheChosen) {
  const double log3 = std::log(3.0);  // sigmoid 0.75
  const Routes routes = reference_routes({0.0, log3, -5.0}, {0, 0, 0}, {2, true, 2.827});
  EXPECT_EQ(routes.experts, (std::vector<std::int32_t>{1, 0}));
  EXPECT_NEAR(routes.weights[0], 0.6 * 2.827, 1e-12);
  EXPECT_NEAR(routes.weights[1], 0.4 * 2.827, 1e-12);
}

TEST(Routing, ChoosesByTheBiasAndWeighsWithoutIt) {
  const double log3 = std::log(3.0);
  const Routes routes = reference_routes({0.0, log3, -log3}, {0.0f, 0.0f, 0.6f}, {2, true, 1.0});
  EXPECT_EQ(routes.experts, (std::vector<std::int32_t>{2, 1}));
  EXPECT_NEAR(routes.weights[0], 0.25, 1e-12);
  EXPECT_NEAR(routes.weights[1], 0.75, 1e-12);
}

TEST(Routing, LeavesBareScoresWhereNothingIsNormalised) {
  const Routes routes = reference_routes({0.0, std::log(3.0)}, {0, 0}, {1, false, 2.0});
  EXPECT_NEAR(routes.weights[0], 1.5, 1e-12);
}

TEST(Routing, TakesTheLowerNumberOfATie) {
  const Routes routes = reference_routes({1.0, 2.0, 2.0, 2.0}, {0, 0, 0, 0}, {2, true, 1.0});
  EXPECT_EQ(routes.experts, (std::vector<std::int32_t>{1, 2}));
}

TEST(Routing, TreatsEveryTokenByItself) {
  const Routes routes = reference_routes({0.0, 1.0, 1.0, 0.0}, {0, 0}, {1, true, 1.0});
  EXPECT_EQ(routes.tokens(), 2);
  EXPECT_EQ(routes.experts, (std::vector<std::int32_t>{1, 0}));
}

TEST(Routing, LogitsAreProductsWithTheGate) {
  Router router;
  router.bias = {0, 0};
  router.gate = {bf16_of_float(1), bf16_of_float(2), bf16_of_float(-1), bf16_of_float(0.5f)};
  const auto logits = reference_logits({bf16_of_float(3), bf16_of_float(4)}, router, 2);
  EXPECT_EQ(logits, (std::vector<double>{11.0, -1.0}));
}

TEST(ErrorOfALayer, IsRelativeOverAllAndPerRow) {
  const std::vector<double> expected{3.0, 4.0, 0.0, 10.0};
  const std::vector<std::uint16_t> found{bf16_of_float(3), bf16_of_float(4), bf16_of_float(0),
                                         bf16_of_float(9)};
  const LayerError error = layer_error(expected, found, 2);
  EXPECT_NEAR(error.rel_l2, 1.0 / std::sqrt(125.0), 1e-12);
  EXPECT_NEAR(error.worst_row_l2, 0.1, 1e-12);
  EXPECT_EQ(error.worst_row, 1);
  EXPECT_FALSE(error.has_non_finite);
}

TEST(ErrorOfALayer, IsInfiniteWhereNothingBelongs) {
  const LayerError error = layer_error({1.0, 0.0}, {bf16_of_float(1), bf16_of_float(1)}, 1);
  EXPECT_TRUE(std::isinf(error.worst_row_l2));
  EXPECT_EQ(error.worst_row, 1);
}

TEST(ErrorOfALayer, NoticesNan) { EXPECT_TRUE(layer_error({1.0}, {0x7fff}, 1).has_non_finite); }

TEST(ErrorOfALayer, NoticesAReferenceThatIsNotFinite) {
  for (const double wrong : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const LayerError error = layer_error({wrong, 1.0}, {bf16_of_float(1), bf16_of_float(1)}, 1);
    EXPECT_TRUE(error.has_non_finite) << wrong;
  }
  EXPECT_FALSE(layer_error({1.0}, {bf16_of_float(1)}, 1).has_non_finite);
}

}  // namespace
}  // namespace chord::examples
