// Judges what a GPU made of a layer: its choice of experts and its output.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/examples/layer_reference.h"

namespace chord::examples {

inline constexpr double kMostRelL2 = 6e-3;  // over all: three roundings to BF16 in a row
inline constexpr double kMostRowL2 = 1.2e-2;

// What one forward chose: [tokens, slots], the shared expert's slot last where there is one.
struct Chosen {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
  std::int64_t slots = 0;
};

struct CheckedRoutes {
  Routes routes;          // the GPU's experts, in its order, with weights in FP64
  std::int64_t ties = 0;  // tokens where FP32 could choose either of two experts
};

// Refuses a token whose experts are not the best ones, or whose weights are wrong, naming it. Of
// experts whose scores differ by less than FP32 can tell, either may be chosen.
Result<CheckedRoutes> check_routes(const Chosen& chosen, const std::vector<float>& logits,
                                   const std::vector<float>& bias, const RoutingRule& rule,
                                   bool shared_slot);

bool is_within_limits(const LayerError& error);

}  // namespace chord::examples
