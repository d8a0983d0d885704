// Reads a Hugging Face config.json. A real one has many more keys than are needed here: they are
// not looked at. What is needed is checked strictly, because a wrong size would plan a wrong
// kernel.
#include <fmt/format.h>

#include "chord/model.h"
#include "heuristics/json_fields.h"
#include "heuristics/validate.h"

namespace chord {
namespace {

using heuristics::describe_json;
using heuristics::Fields;
using nlohmann::json;

constexpr std::int64_t kMaxConfigSize = std::int64_t{1} << 20;
constexpr const char* kNeeded =
    "this library runs INT4, symmetric, group size 32, pack-quantized (compressed-tensors)";

// The part that holds the MoE sizes: the top level (K2-Thinking) or text_config (K2.5 and later).
Result<Fields> text_section(const Fields& top) {
  if (top.has("n_routed_experts")) return top;
  const json* section = top.find("text_config");
  if (section) return top.object("text_config");
  return top.wrong("n_routed_experts", "neither here nor in a text_config",
                   "it has to be the config.json of a mixture-of-experts model");
}

Status expect_text(const Fields& fields, const char* name, const char* expected) {
  const json* value = fields.find(name);
  if (value && value->is_string() && value->get_ref<const std::string&>() == expected) return {};
  return fields.wrong(name, value ? "found " + describe_json(*value) : "the field is missing",
                      fmt::format("it has to be \"{}\": {}", expected, kNeeded));
}

Status expect_number(const Fields& fields, const char* name, std::int64_t expected) {
  const json* value = fields.find(name);
  if (value && value->is_number_integer() && *value == expected) return {};
  return fields.wrong(name, value ? "found " + describe_json(*value) : "the field is missing",
                      fmt::format("it has to be {}: {}", expected, kNeeded));
}

// A field that may be missing, null or false, and must not be anything else.
Status expect_off(const Fields& fields, const char* name, const char* why) {
  const json* value = fields.find(name);
  if (!value || *value == false) return {};
  return fields.wrong(name, "found " + describe_json(*value), why);
}

Status check_group(const Fields& group) {
  CHORD_TRY(expect_off(group, "input_activations", "activations have to stay BF16"));
  if (group.has("format")) {
    CHORD_TRY(expect_text(group, "format", "pack-quantized"));
  }
  CHORD_TRY(const Fields weights, group.object("weights"));
  CHORD_TRY(expect_number(weights, "num_bits", 4));
  CHORD_TRY(expect_text(weights, "type", "int"));
  const json* symmetric = weights.find("symmetric");
  if (!symmetric || *symmetric != true)
    return weights.wrong("symmetric",
                         symmetric ? "found " + describe_json(*symmetric) : "the field is missing",
                         fmt::format("it has to be true: {}", kNeeded));
  CHORD_TRY(expect_text(weights, "strategy", "group"));
  CHORD_TRY(expect_number(weights, "group_size", 32));
  CHORD_TRY(expect_off(weights, "dynamic", "weights have to be quantized beforehand"));
  return expect_off(weights, "actorder", "columns have to be in their natural order");
}

Status check_quantization(const Fields& section) {
  CHORD_TRY(const Fields quantization, section.object("quantization_config"));
  CHORD_TRY(expect_text(quantization, "quant_method", "compressed-tensors"));
  CHORD_TRY(expect_text(quantization, "format", "pack-quantized"));
  CHORD_TRY(const Fields groups, quantization.object("config_groups"));
  if (groups.raw().empty())
    return quantization.wrong("config_groups", "there is no group", kNeeded);
  for (const auto& item : groups.raw().items()) {
    CHORD_TRY(const Fields group, groups.object(item.key().c_str()));
    CHORD_TRY(check_group(group));
  }
  return {};
}

// Both places are looked at: a file that contradicts itself is refused.
Status check_all_quantization(const Fields& top, const Fields& section) {
  const bool nested = !section.path().empty();
  if (nested && top.has("quantization_config")) {
    CHORD_TRY(check_quantization(top));
    if (!section.has("quantization_config")) return {};
  }
  if (section.has("quantization_config")) return check_quantization(section);
  return section.wrong("quantization_config", "the field is missing: the weights are not quantized",
                       kNeeded);
}

Result<std::string> model_name(const Fields& top, const Fields& section) {
  if (top.has("model_type")) return top.text("model_type");
  if (section.has("model_type")) return section.text("model_type");
  return std::string("unnamed");
}

Result<ModelConfig> read_sizes(const Fields& section) {
  ModelConfig model;
  CHORD_TRY(model.hidden_size, section.integer("hidden_size", 1, kMaxConfigSize));
  CHORD_TRY(model.moe_intermediate_size,
            section.integer("moe_intermediate_size", 1, kMaxConfigSize));
  CHORD_TRY(model.n_routed_experts,
            section.integer("n_routed_experts", 1, heuristics::kMaxExpertsPerGpu));
  CHORD_TRY(model.num_experts_per_tok,
            section.integer("num_experts_per_tok", 1, model.n_routed_experts));
  CHORD_TRY(model.n_shared_experts, section.integer_or("n_shared_experts", 0, 0, 1024));
  CHORD_TRY(model.num_hidden_layers, section.integer("num_hidden_layers", 1, 100000));
  CHORD_TRY(model.first_k_dense_replace,
            section.integer_or("first_k_dense_replace", 0, 0, model.num_hidden_layers));
  return model;
}

}  // namespace

Result<ModelConfig> read_model_config(std::string_view text, std::string_view origin) {
  CHORD_TRY(const json parsed, heuristics::parse_json(text, origin));
  CHORD_TRY(const Fields top, Fields::of(parsed, std::string(origin), ""));
  CHORD_TRY(const Fields section, text_section(top));
  CHORD_TRY(ModelConfig model, read_sizes(section));
  CHORD_TRY(check_all_quantization(top, section));
  CHORD_TRY(model.model, model_name(top, section));
  return model;
}

}  // namespace chord
