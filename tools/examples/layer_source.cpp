// Config, shard arithmetic, and the fused gate/up matrix.
#include "tools/examples/layer_source.h"

#include <fmt/format.h>

#include "chord/model.h"
#include "tools/examples/checked_json.h"

namespace chord::examples {
namespace {

using nlohmann::json;

Error wrong_config(const std::string& origin, const char* field, std::string found,
                   const char* help) {
  return Error{ErrorCode::invalid_argument, fmt::format("{} of {}", field, origin),
               std::move(found), help};
}

// The MoE keys stand at the top level or inside text_config.
const json& section_of(const json& config) {
  const auto nested = config.find("text_config");
  const bool is_nested = !config.contains("n_routed_experts") && nested != config.end();
  return is_nested && nested->is_object() ? *nested : config;
}

std::string found_in(const json& section, const char* field) {
  const auto found = section.find(field);
  return found == section.end() ? "the field is missing" : "found " + shown(*found);
}

Status read_routing(const json& section, const std::string& origin, RoutingRule& rule) {
  if (section.value("scoring_func", json()) != json("sigmoid"))
    return wrong_config(origin, "scoring_func", found_in(section, "scoring_func"),
                        "this example routes by sigmoid scores, as Kimi K2 does");
  if (section.value("n_group", json(1)) != json(1))
    return wrong_config(origin, "n_group", found_in(section, "n_group"),
                        "this example has no grouped routing");
  const auto scaling = section.find("routed_scaling_factor");
  if (scaling == section.end() || !scaling->is_number() || !(scaling->get<double>() > 0))
    return wrong_config(origin, "routed_scaling_factor", found_in(section, "routed_scaling_factor"),
                        "it has to be positive");
  rule.scaling = scaling->get<double>();
  const auto normalise = section.find("norm_topk_prob");
  if (normalise == section.end() || !normalise->is_boolean())
    return wrong_config(origin, "norm_topk_prob", found_in(section, "norm_topk_prob"),
                        "it has to be true or false");
  rule.normalise = normalise->get<bool>();
  return {};
}

std::string label(const ShardChoice& choice) {
  return fmt::format("rank {} of {} {}", choice.rank, name(choice.shard.axis), choice.shard.ways);
}

Error wrong_shard(const ShardChoice& choice, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, label(choice), std::move(found), std::move(help)};
}

}  // namespace

Result<MoeConfig> read_moe_config(const std::string& text, const std::string& origin) {
  MoeConfig config;
  CHORD_TRY(config.model, read_model_config(text, origin));
  CHORD_TRY(const json parsed, parse_object(text, origin));
  CHORD_TRY(read_routing(section_of(parsed), origin, config.routing));
  config.routing.top_k = config.model.num_experts_per_tok;
  return config;
}

Status check_layer(const MoeConfig& config, std::int64_t layer) {
  const ModelConfig& model = config.model;
  if (layer >= model.first_k_dense_replace && layer < model.num_hidden_layers) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("layer {}", layer),
               layer < 0 || layer >= model.num_hidden_layers
                   ? fmt::format("the model has {} layers", model.num_hidden_layers)
                   : "a dense layer without experts",
               fmt::format("layers {} to {} have experts", model.first_k_dense_replace,
                           model.num_hidden_layers - 1)};
}

Result<LayerShape> shard_shape(const MoeConfig& config, const ShardChoice& choice) {
  const ModelConfig& model = config.model;
  const int ways = choice.shard.ways;
  if (ways < 1) return wrong_shard(choice, fmt::format("{} ways", ways), "1 or more");
  if (choice.rank < 0 || choice.rank >= ways)
    return wrong_shard(choice, "no such rank", fmt::format("ranks are 0 to {}", ways - 1));
  const bool by_expert = choice.shard.axis == ShardAxis::expert;
  const std::int64_t divided = by_expert ? model.n_routed_experts : model.moe_intermediate_size;
  if (divided % ways != 0)
    return wrong_shard(choice,
                       fmt::format("{} {} can not be cut into {} equal parts", divided,
                                   by_expert ? "experts" : "intermediate columns", ways),
                       "choose ways that divide it");
  LayerShape shape;
  shape.hidden = model.hidden_size;
  shape.full_intermediate = model.moe_intermediate_size;
  shape.intermediate = by_expert ? model.moe_intermediate_size : divided / ways;
  shape.first_intermediate = by_expert ? 0 : choice.rank * shape.intermediate;
  shape.all_experts = model.n_routed_experts;
  shape.routed = by_expert ? divided / ways : model.n_routed_experts;
  shape.first_expert = by_expert ? choice.rank * shape.routed : 0;
  shape.shared_slot = choice.shared_slot;
  if (shape.hidden % 64 != 0 || shape.intermediate % 64 != 0)
    return wrong_shard(choice,
                       fmt::format("hidden size {}, intermediate size {} per GPU", shape.hidden,
                                   shape.intermediate),
                       "both have to be multiples of 64");
  return shape;
}

const char* name(Projection projection) {
  switch (projection) {
    case Projection::gate:
      return "gate_proj";
    case Projection::up:
      return "up_proj";
    case Projection::down:
      break;
  }
  return "down_proj";
}

namespace {

QuantizedMatrix empty_matrix(std::int64_t n, std::int64_t k) {
  QuantizedMatrix matrix{n, k, {}, {}};
  matrix.words.resize(static_cast<std::size_t>(n * k / kCodesInWord));
  matrix.scales.resize(static_cast<std::size_t>(n * k / kGroup));
  return matrix;
}

}  // namespace

Result<QuantizedMatrix> LayerSource::gate_up(std::int64_t slot) const {
  const std::int64_t rows = shape_.intermediate;
  QuantizedMatrix fused = empty_matrix(2 * rows, shape_.hidden);
  const Part part{shape_.first_intermediate, rows, 0, shape_.hidden};
  std::uint32_t* const words = fused.words.data();
  std::uint16_t* const scales = fused.scales.data();
  CHORD_TRY(read(slot, Projection::gate, part, words, scales));
  CHORD_TRY(read(slot, Projection::up, part, words + fused.words.size() / 2,
                 scales + fused.scales.size() / 2));
  return fused;
}

Result<QuantizedMatrix> LayerSource::down(std::int64_t slot) const {
  QuantizedMatrix matrix = empty_matrix(shape_.hidden, shape_.intermediate);
  const Part part{0, shape_.hidden, shape_.first_intermediate, shape_.intermediate};
  CHORD_TRY(read(slot, Projection::down, part, matrix.words.data(), matrix.scales.data()));
  return matrix;
}

}  // namespace chord::examples
