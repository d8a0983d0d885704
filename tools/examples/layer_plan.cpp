// From a layer's shape to the library's descriptor.
#include "tools/examples/layer_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace chord::examples {
namespace {

constexpr std::int64_t kMostDecodeTokens = 256;
constexpr Fused kAll[] = {Fused::none, Fused::swiglu, Fused::weighted, Fused::both};

std::string text_of(const Decision& decision) {
  return fmt::format("{} {} x {} ({})", chord::name(decision.kernel.mainloop),
                     decision.kernel.tile_m, decision.kernel.tile_n, chord::name(decision.origin));
}

}  // namespace

const char* name(Fused fused) {
  switch (fused) {
    case Fused::none:
      return "none";
    case Fused::swiglu:
      return "swiglu";
    case Fused::weighted:
      return "weighted";
    case Fused::both:
      break;
  }
  return "both";
}

Result<Fused> parse_fused(std::string_view text) {
  for (const Fused fused : kAll)
    if (text == name(fused)) return fused;
  return Error{ErrorCode::invalid_argument, fmt::format("fused '{}'", text.substr(0, 64)),
               "no such name", "one of: none, swiglu, weighted, both"};
}

std::int64_t LayerQuestion::expected_rows() const {
  const std::int64_t routes = tokens * top_k;
  const std::int64_t share =
      choice.shard.axis == ShardAxis::expert ? routes / choice.shard.ways : routes;
  return std::max<std::int64_t>(1, share) + (shape.shared_slot ? tokens : 0);
}

LayerDescriptor describe(const LayerQuestion& question, Fused fused) {
  const LayerShape& shape = question.shape;
  LayerDescriptor layer;
  layer.family = Family::indexed;
  layer.arch = question.arch;
  layer.num_sms = question.num_sms;
  layer.role =
      question.role.value_or(question.tokens <= kMostDecodeTokens ? Role::decode : Role::prefill);
  layer.shard = question.choice.shard;
  layer.experts = shape.slots();
  layer.top_k = question.slots();
  layer.gate_up_n = 2 * shape.intermediate;
  layer.gate_up_k = shape.hidden;
  layer.down_n = shape.hidden;
  layer.down_k = shape.intermediate;
  layer.rows = question.expected_rows();
  layer.block_m = question.block_m;
  if (fuses_swiglu(fused)) layer.gate_up_epilogue = Epilogue::swiglu;
  if (fuses_weights(fused)) layer.down_epilogue = Epilogue::weighted;
  return layer;
}

std::string text_of(const LayerPlan& plan) {
  return fmt::format("block_m {}; gate/up {}, down {}", plan.block_m, text_of(plan.gate_up),
                     text_of(plan.down));
}

}  // namespace chord::examples
