// Built-in models and sharding: from a model's sizes to the shapes of one GPU's expert GEMMs.
#include "chord/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "heuristics/validate.h"

namespace chord {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;

// The Kimi K2 line has one MoE geometry; K2.5 and later keep it inside text_config.
constexpr const char* kKimiModels[] = {"kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-k2.7"};

ModelConfig kimi_k2(std::string_view model) {
  return ModelConfig{.model = std::string(model),
                     .hidden_size = 7168,
                     .moe_intermediate_size = 2048,
                     .n_routed_experts = 384,
                     .num_experts_per_tok = 8,
                     .n_shared_experts = 1,
                     .num_hidden_layers = 61,
                     .first_k_dense_replace = 1};
}

struct WaysRange {
  int least;
  int most;
};

WaysRange ways_range(ShardAxis axis) {
  return axis == ShardAxis::expert ? WaysRange{4, 32} : WaysRange{2, 16};
}

std::string shard_text(const ModelConfig& model, const Shard& shard) {
  return fmt::format("{} sharded {}{}", model.model.empty() ? "model" : model.model,
                     name(shard.axis), shard.ways);
}

Error wrong(const ModelConfig& model, const Shard& shard, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, shard_text(model, shard), std::move(found),
               std::move(help)};
}

Status check_model(const ModelConfig& model, const Shard& shard) {
  struct Size {
    const char* field;
    std::int64_t value;
    std::int64_t most;
  };
  for (const Size& size :
       {Size{"hidden_size", model.hidden_size, kMaxSize},
        Size{"moe_intermediate_size", model.moe_intermediate_size, kMaxSize},
        Size{"n_routed_experts", model.n_routed_experts, heuristics::kMaxExpertsPerGpu},
        Size{"num_experts_per_tok", model.num_experts_per_tok, model.n_routed_experts}})
    if (size.value < 1 || size.value > size.most)
      return wrong(model, shard, fmt::format("{} is {}", size.field, size.value),
                   fmt::format("{} has to be in 1..{}", size.field, size.most));
  return {};
}

Status check_ways(const ModelConfig& model, const Shard& shard) {
  const WaysRange range = ways_range(shard.axis);
  const bool is_power = shard.ways > 0 && std::has_single_bit(static_cast<unsigned>(shard.ways));
  if (!is_power || shard.ways < range.least || shard.ways > range.most)
    return wrong(model, shard, fmt::format("{} ways", shard.ways),
                 fmt::format("{} takes a power of two in {}..{}", name(shard.axis), range.least,
                             range.most));
  const bool by_expert = shard.axis == ShardAxis::expert;
  const std::int64_t divided = by_expert ? model.n_routed_experts : model.moe_intermediate_size;
  const char* field = by_expert ? "n_routed_experts" : "moe_intermediate_size";
  if (divided % shard.ways != 0)
    return wrong(model, shard,
                 fmt::format("{} {} leaves {} over {} ways", field, divided, divided % shard.ways,
                             shard.ways),
                 fmt::format("choose ways that divide {}", divided));
  return {};
}

}  // namespace

std::vector<std::string> builtin_model_names() {
  return {std::begin(kKimiModels), std::end(kKimiModels)};
}

Result<ModelConfig> builtin_model(std::string_view model) {
  for (const char* known : kKimiModels)
    if (model == known) return kimi_k2(model);
  return Error{
      ErrorCode::not_found, fmt::format("model '{}'", model.substr(0, 64)),
      "no built-in model of this name",
      fmt::format("one of: {}; or give the model's config.json", fmt::join(kKimiModels, ", "))};
}

Result<LayerDescriptor> shard_layer(const ModelConfig& model, const Shard& shard) {
  if (shard.axis != ShardAxis::expert && shard.axis != ShardAxis::tensor)
    return wrong(model, shard, "the shard axis is none of the two", "ep or tp");
  CHORD_TRY(check_model(model, shard));
  CHORD_TRY(check_ways(model, shard));
  const bool by_expert = shard.axis == ShardAxis::expert;
  const std::int64_t intermediate =
      by_expert ? model.moe_intermediate_size : model.moe_intermediate_size / shard.ways;
  LayerDescriptor layer;
  layer.shard = shard;
  layer.experts = by_expert ? model.n_routed_experts / shard.ways : model.n_routed_experts;
  layer.top_k = model.num_experts_per_tok;
  layer.gate_up_n = 2 * intermediate;
  layer.gate_up_k = model.hidden_size;
  layer.down_n = model.hidden_size;
  layer.down_k = intermediate;
  if (!abi::is_legal_shape(layer.gate_up_n, layer.gate_up_k) ||
      !abi::is_legal_shape(layer.down_n, layer.down_k))
    return wrong(model, shard,
                 fmt::format("gate/up {}x{}, down {}x{}", layer.gate_up_n, layer.gate_up_k,
                             layer.down_n, layer.down_k),
                 "hidden size and intermediate size per GPU have to be multiples of 64");
  return layer;
}

}  // namespace chord
