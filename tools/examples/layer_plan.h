// How a layer of this shape is run: what an engine would ask the library for, and nothing that
// needs a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chord/engine.h"
#include "tools/examples/layer_source.h"

namespace chord::examples {

enum class Fused { none, swiglu, weighted, both };

const char* name(Fused fused);
Result<Fused> parse_fused(std::string_view text);
inline bool fuses_swiglu(Fused fused) { return fused == Fused::swiglu || fused == Fused::both; }
inline bool fuses_weights(Fused fused) { return fused == Fused::weighted || fused == Fused::both; }

struct LayerQuestion {
  LayerShape shape;
  ShardChoice choice;
  std::int64_t top_k = 0;
  std::int64_t tokens = 0;
  Architecture arch = Architecture::sm_90a;
  int num_sms = 0;             // 0: the architecture's usual number
  std::optional<int> block_m;  // of an engine whose routing is aligned already
  std::optional<Role> role;    // none: decode up to 256 tokens, prefill above

  // Routes of a token, the shared expert's included.
  std::int64_t slots() const { return top_k + (shape.shared_slot ? 1 : 0); }
  // Routed rows that this GPU can expect: an even share of the routes.
  std::int64_t expected_rows() const;
};

LayerDescriptor describe(const LayerQuestion& question, Fused fused);

// "block_m 8; gate/up mma 16 x 128 (measured), down mma 16 x 64 (rule)"
std::string text_of(const LayerPlan& plan);

}  // namespace chord::examples
