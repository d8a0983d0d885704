// The layer in FP64 on the CPU, written for reading and not for speed: logits, sigmoid scores, the
// choice of experts, and for every chosen one gate/up, SwiGLU and down with weights
// w = bf16((code - 8) * scale). No intermediate is rounded. Runs on a sample of tokens.
//
//   CHORD_TRY(const Router router, source.router());
//   const auto logits = reference_logits(x, router, hidden);
//   const Routes routes = reference_routes(logits, router.bias, config.routing);
//   CHORD_TRY(const auto y, reference_layer(source, x, routes, {0, 7, 19}, threads));
#pragma once

#include <cstdint>
#include <vector>

#include "tools/examples/layer_source.h"

namespace chord::examples {

// Every token's experts, best first, by their number in the whole model, and their weights.
struct Routes {
  std::int64_t top_k = 0;
  std::vector<std::int32_t> experts;  // [tokens, top_k]
  std::vector<double> weights;        // [tokens, top_k]

  std::int64_t tokens() const { return static_cast<std::int64_t>(experts.size()) / top_k; }
};

// x [tokens, hidden] in BF16; logits [tokens, experts].
std::vector<double> reference_logits(const std::vector<std::uint16_t>& x, const Router& router,
                                     std::int64_t hidden, int threads = 1);

// Highest sigmoid(logit) + bias first; of two that are equal, the lower number.
Routes reference_routes(const std::vector<double>& logits, const std::vector<float>& bias,
                        const RoutingRule& rule);

// What the layer of one GPU gives for the tokens named in `sample`: [sample, hidden]. Experts that
// the source does not hold add nothing; with a shared slot that expert is added with weight 1.
Result<std::vector<double>> reference_layer(const LayerSource& source,
                                            const std::vector<std::uint16_t>& x,
                                            const Routes& routes,
                                            const std::vector<std::int64_t>& sample, int threads);

// found [rows, columns] in BF16 against expected.
struct LayerError {
  double rel_l2 = 0;
  double worst_row_l2 = 0;
  std::int64_t worst_row = -1;
  bool has_non_finite = false;  // on either side
};
LayerError layer_error(const std::vector<double>& expected, const std::vector<std::uint16_t>& found,
                       std::int64_t columns);

}  // namespace chord::examples
