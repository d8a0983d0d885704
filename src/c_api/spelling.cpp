// One table of fields that an error begins with, and one of phrases of the C++ face.
#include "src/c_api/spelling.h"

#include <fmt/format.h>

#include <string_view>

namespace chord::c_api {
namespace {

constexpr std::string_view kGemmFields =
    " n k experts num_sms rows max_m expected_m block_m role profile ";
constexpr std::string_view kModelFields =
    " hidden_size moe_intermediate_size n_routed_experts num_experts_per_tok ";

// An entry is for the C functions whose names begin with `functions`.
struct Fields {
  std::string_view functions;
  std::string_view names;  // each between blanks
  std::string_view c;      // the star is the name
};
constexpr Fields kFields[] = {
    {"chord_launch_", " activations output weight.codes weight.scales workspace row_weights ",
     "arguments.*"},
    {"chord_launch_",
     " sorted_ids expert_ids num_tokens_padded capacity num_ids top_k rows masked_m max_m ",
     "routing.*"},
    {"chord_gate", " tokens experts top_k scale logits ids weights ", "arguments.*"},
    {"chord_align",
     " num_ids experts block_m num_tokens_padded ids sorted_ids expert_ids workspace ",
     "arguments.*"},
    {"chord_swiglu", " rows columns gate_up output ", "arguments.*"},
    {"chord_combine", " tokens slots columns rows output ", "arguments.*"},
    {"chord_pack", " weights ", "weight.codes"},
    {"chord_pack", " scales experts ", "weight.*"},
    {"chord_plan_gemm", kGemmFields, "descriptor.*"},
    {"chord_prepare_gemm", kGemmFields, "descriptor.*"},
    {"chord_schedule_table", kGemmFields, "descriptor.*"},
    {"chord_plan_layer", " n k ", "layer.gate_up_* or layer.down_*"},
    {"chord_plan_layer", " shard.ways ", "layer.shard_ways"},
    {"chord_plan_layer",
     " experts top_k num_sms rows max_m expected_m block_m gate_up_epilogue down_epilogue ",
     "layer.*"},
    {"chord_model_shard", kModelFields, "model.*"},
    {"chord_prewarm", kModelFields, "deployment.model.*"},
    {"chord_prewarm", " rows ", "deployment.min_* and max_*"},
    {"chord_prewarm", " num_sms gate_up_epilogue down_epilogue ", "deployment.*"},
};

struct Phrase {
  std::string_view functions;
  std::string_view core;
  std::string_view c;
};
constexpr Phrase kPhrases[] = {
    {"chord_", "RowOrder::gate_up", "CHORD_ROWS_GATE_UP"},
    {"chord_", "Epilogue::swiglu", "CHORD_EPILOGUE_SWIGLU"},
    {"chord_", "Epilogue::weighted", "CHORD_EPILOGUE_WEIGHTED"},
    {"chord_create", "Options::", "options."},
    {"chord_launch_", "PreparedKernel::workspace_bytes", "workspace_bytes of the kernel's info"},
    {"chord_launch_", "set arguments.routing to the kind",
     "call the chord_launch_ function of the family"},
    {"chord_launch_", "the weight", "arguments.weight"},
    {"chord_launch_contiguous", "m_indices", "routing.groups"},
    {"chord_launch_contiguous", "expert_offsets", "routing.groups"},
    {"chord_align", "(align_", "(chord_align_sizes, "},
    {"chord_swiglu", "filter.", "arguments."},
    {"chord_combine", "filter.", "arguments."},
    {"chord_pack", "its layout has version", "weight.layout_version is"},
    {"chord_pack", "N % 64", "weight.n % 64"},
    {"chord_pack", "K % 64", "weight.k % 64"},
    {"chord_plan_gemm", "no profile", "descriptor.profile: no profile"},
    {"chord_prepare_gemm", "no profile", "descriptor.profile: no profile"},
    {"chord_schedule_table", "no profile", "descriptor.profile: no profile"},
    {"chord_prewarm", "no architecture", "deployment.archs: no architecture"},
    {"chord_prewarm", "no role", "deployment.roles: no role"},
    {"chord_prewarm", "no family", "deployment.families: no family"},
};

std::string with_path(std::string_view c, std::string_view name) {
  std::string path;
  for (const char letter : c) letter == '*' ? path.append(name) : path.append(1, letter);
  return path;
}

// The first word of `found`, if it is a field, becomes the field's path.
void name_field(std::string_view function, std::string& found) {
  const std::string first = found.substr(0, found.find(' '));
  if (first.empty()) return;
  for (const Fields& fields : kFields)
    if (function.starts_with(fields.functions) &&
        fields.names.find(fmt::format(" {} ", first)) != std::string_view::npos) {
      found.replace(0, first.size(), with_path(fields.c, first));
      return;
    }
}

void replace_phrases(std::string_view function, std::string& text) {
  for (const Phrase& phrase : kPhrases) {
    if (!function.starts_with(phrase.functions)) continue;
    for (std::size_t at = text.find(phrase.core); at != std::string::npos;
         at = text.find(phrase.core, at + phrase.c.size()))
      text.replace(at, phrase.core.size(), phrase.c);
  }
}

}  // namespace

Error spelled_for_c(const char* function, Error error) {
  if (error.asked == function) return error;  // it is in these words already
  for (std::string* text : {&error.asked, &error.found, &error.help})
    replace_phrases(function, *text);
  name_field(function, error.found);
  error.asked = fmt::format("{}: {}", function, error.asked);
  return error;
}

}  // namespace chord::c_api
