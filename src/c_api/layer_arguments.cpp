// Field by field.
#include "src/c_api/layer_arguments.h"

namespace chord::c_api {
namespace {

static_assert(static_cast<int>(LogitType::bf16) == CHORD_LOGITS_BF16);
static_assert(static_cast<int>(Scoring::softmax) == CHORD_SCORING_SOFTMAX);
static_assert(static_cast<int>(ForeignExperts::mark) == CHORD_FOREIGN_MARK);

constexpr std::string_view kDependent = "arguments.programmatic_dependent_launch";

}  // namespace

Status convert(const Call& call, const chord_gate_arguments_t& c, GateArguments& to) {
  to.logits = c.logits;
  CHORD_TRY(to.logit_type, call.choose<LogitType>(c.logit_type, "arguments.logit_type", 2));
  to.correction_bias = c.correction_bias;
  to.tokens = c.tokens;
  to.experts = c.experts;
  to.top_k = c.top_k;
  CHORD_TRY(to.scoring, call.choose<Scoring>(c.scoring, "arguments.scoring", 2));
  CHORD_TRY(to.renormalise, call.flag(c.renormalise, "arguments.renormalise"));
  to.scale = c.scale;
  CHORD_TRY(to.shared_slot, call.flag(c.shared_slot, "arguments.shared_slot"));
  to.ids = c.ids;
  to.weights = c.weights;
  CHORD_TRY(to.programmatic_dependent_launch,
            call.flag(c.programmatic_dependent_launch, kDependent));
  return {};
}

Status convert(const Call& call, const chord_align_arguments_t& c, AlignArguments& to) {
  to.ids = c.ids;
  to.num_ids = c.num_ids;
  to.experts = c.experts;
  to.expert_map = c.expert_map;
  CHORD_TRY(to.foreign, call.choose<ForeignExperts>(c.foreign, "arguments.foreign", 2));
  to.block_m = c.block_m;
  to.sorted_ids = c.sorted_ids;
  to.expert_ids = c.expert_ids;
  to.num_tokens_padded = c.num_tokens_padded;
  to.capacity = c.capacity;
  to.workspace = c.workspace;
  to.workspace_bytes = c.workspace_bytes;
  CHORD_TRY(to.programmatic_dependent_launch,
            call.flag(c.programmatic_dependent_launch, kDependent));
  return {};
}

Status convert(const Call& call, const chord_swiglu_arguments_t& c, SwigluArguments& to) {
  to.gate_up = c.gate_up;
  to.output = c.output;
  to.rows = c.rows;
  to.columns = c.columns;
  to.filter = {.ids = c.ids, .expert_map = c.expert_map, .experts = c.experts};
  CHORD_TRY(to.programmatic_dependent_launch,
            call.flag(c.programmatic_dependent_launch, kDependent));
  return {};
}

Status convert(const Call& call, const chord_combine_arguments_t& c, CombineArguments& to) {
  to.rows = c.rows;
  to.weights = c.weights;
  to.output = c.output;
  to.tokens = c.tokens;
  to.slots = c.slots;
  to.columns = c.columns;
  to.filter = {.ids = c.ids, .expert_map = c.expert_map, .experts = c.experts};
  CHORD_TRY(to.programmatic_dependent_launch,
            call.flag(c.programmatic_dependent_launch, kDependent));
  return {};
}

}  // namespace chord::c_api
