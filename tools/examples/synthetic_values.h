// The numbers of a synthetic layer: every element is a function of its place alone, so that a part
// can be made without what lies before it.
#pragma once

#include <cstdint>

#include "tools/examples/layer_source.h"

namespace chord::examples {

// What the values of one matrix depend on. The shared expert is expert -1.
struct MatrixPlace {
  std::uint64_t seed = 1;
  std::int64_t layer = 1;
  std::int64_t expert = 0;
  Projection projection = Projection::gate;
};

void fill_words(const MatrixPlace& place, std::int64_t k, const Part& part, std::uint32_t* words);
void fill_scales(const MatrixPlace& place, std::int64_t k, const Part& part, std::uint16_t* scales);

Router synthetic_router(std::uint64_t seed, std::int64_t layer, std::int64_t experts,
                        std::int64_t hidden);

// BF16, about standard normal: activations.
std::vector<std::uint16_t> synthetic_activations(std::uint64_t seed, std::int64_t count);

}  // namespace chord::examples
