// Field by field. Enumerators of both faces have the same order; the assertions hold it.
#include "src/c_api/convert.h"

#include <fmt/format.h>

namespace chord::c_api {
namespace {

template <class Ours>
constexpr bool same(Ours ours, int theirs, int first = 0) {
  return static_cast<int>(ours) + first == theirs;
}

static_assert(same(Family::indexed, CHORD_FAMILY_INDEXED));
static_assert(same(Family::grouped_contiguous, CHORD_FAMILY_GROUPED_CONTIGUOUS));
static_assert(same(Family::grouped_masked, CHORD_FAMILY_GROUPED_MASKED));
static_assert(same(Architecture::sm_90a, CHORD_ARCH_SM_90A));
static_assert(same(Architecture::sm_103a, CHORD_ARCH_SM_103A));
static_assert(same(Role::decode, CHORD_ROLE_DECODE, 1) && same(Role::mix, CHORD_ROLE_MIX, 1));
static_assert(same(ShardAxis::tensor, CHORD_SHARD_TENSOR));
static_assert(same(Epilogue::swiglu, CHORD_EPILOGUE_SWIGLU));
static_assert(same(Epilogue::weighted, CHORD_EPILOGUE_WEIGHTED));
static_assert(same(Origin::override_value, CHORD_ORIGIN_OVERRIDE));
static_assert(same(Origin::rule, CHORD_ORIGIN_RULE));
static_assert(same(Origin::fallback, CHORD_ORIGIN_FALLBACK));
static_assert(same(abi::Mainloop::resident, CHORD_MAINLOOP_RESIDENT));
static_assert(same(abi::Dequantisation::accumulator, CHORD_DEQUANTISATION_ACCUMULATOR));
static_assert(same(abi::Split::automatic, CHORD_SPLIT_AUTOMATIC));
static_assert(same(abi::Release::every_lane, CHORD_RELEASE_EVERY_LANE));

template <class Theirs, class Ours>
Theirs enumerator(Ours value) {
  return static_cast<Theirs>(static_cast<int>(value));
}

std::optional<int> positive(std::int32_t value) {
  if (value == 0) return std::nullopt;
  return value;
}

}  // namespace

Result<Family> family_of(const Call& call, const chord_family_t& family,
                         std::string_view argument) {
  return call.choose<Family>(family, argument, 3);
}

Result<Architecture> arch_of(const Call& call, const chord_arch_t& arch,
                             std::string_view argument) {
  return call.choose<Architecture>(arch, argument, 3);
}

Result<std::optional<Role>> role_of(const Call& call, const chord_role_t& role,
                                    std::string_view argument) {
  if (raw(role) == CHORD_ROLE_NONE) return std::optional<Role>();
  CHORD_TRY(const Role known, call.choose<Role>(role, argument, 3, CHORD_ROLE_DECODE));
  return std::optional<Role>(known);
}

Result<ShardAxis> axis_of(const Call& call, const chord_shard_axis_t& axis,
                          std::string_view argument) {
  return call.choose<ShardAxis>(axis, argument, 2);
}

Result<Epilogue> epilogue_of(const Call& call, const chord_epilogue_t& epilogue,
                             std::string_view argument) {
  return call.choose<Epilogue>(epilogue, argument, 3);
}

Result<GemmDescriptor> descriptor_of(const Call& call, const chord_gemm_descriptor_t* descriptor) {
  CHORD_TRY(const chord_gemm_descriptor_t c, read_struct(call, descriptor, "descriptor"));
  GemmDescriptor d;
  CHORD_TRY(d.family, family_of(call, c.family, "descriptor.family"));
  CHORD_TRY(d.arch, arch_of(call, c.arch, "descriptor.arch"));
  CHORD_TRY(d.role, role_of(call, c.role, "descriptor.role"));
  CHORD_TRY(d.epilogue, epilogue_of(call, c.epilogue, "descriptor.epilogue"));
  d.num_sms = c.num_sms;
  d.block_m = positive(c.block_m);
  d.n = c.n;
  d.k = c.k;
  d.experts = c.experts;
  d.rows = c.rows;
  d.max_m = c.max_m;
  d.expected_m = c.expected_m;
  d.profile = text_of(c.profile).value_or("");
  return d;
}

Result<LayerDescriptor> layer_of(const Call& call, const chord_layer_descriptor_t* layer) {
  CHORD_TRY(const chord_layer_descriptor_t c, read_struct(call, layer, "layer"));
  LayerDescriptor l;
  CHORD_TRY(l.family, family_of(call, c.family, "layer.family"));
  CHORD_TRY(l.arch, arch_of(call, c.arch, "layer.arch"));
  CHORD_TRY(const std::optional<Role> role, role_of(call, c.role, "layer.role"));
  CHORD_TRY(l.shard.axis, axis_of(call, c.shard_axis, "layer.shard_axis"));
  CHORD_TRY(l.gate_up_epilogue, epilogue_of(call, c.gate_up_epilogue, "layer.gate_up_epilogue"));
  CHORD_TRY(l.down_epilogue, epilogue_of(call, c.down_epilogue, "layer.down_epilogue"));
  l.role = role.value_or(Role::decode);
  l.shard.ways = c.shard_ways;
  l.num_sms = c.num_sms;
  l.experts = c.experts;
  l.top_k = c.top_k;
  l.gate_up_n = c.gate_up_n;
  l.gate_up_k = c.gate_up_k;
  l.down_n = c.down_n;
  l.down_k = c.down_k;
  l.rows = c.rows;
  l.max_m = c.max_m;
  l.expected_m = c.expected_m;
  l.block_m = positive(c.block_m);
  return l;
}

Result<ModelConfig> model_of(const Call& call, const chord_model_t* model,
                             std::string_view argument) {
  CHORD_TRY(const chord_model_t c, read_struct(call, model, argument));
  const auto* end = static_cast<const char*>(std::memchr(c.name, '\0', sizeof c.name));
  if (end == nullptr)
    return call.wrong(fmt::format("{}.name", argument), "has no final zero",
                      "a name of at most 63 bytes");
  return ModelConfig{.model = std::string(c.name, end),
                     .hidden_size = c.hidden_size,
                     .moe_intermediate_size = c.moe_intermediate_size,
                     .n_routed_experts = c.n_routed_experts,
                     .num_experts_per_tok = c.num_experts_per_tok,
                     .n_shared_experts = c.n_shared_experts,
                     .num_hidden_layers = c.num_hidden_layers,
                     .first_k_dense_replace = c.first_k_dense_replace};
}

chord_gemm_descriptor_t to_c(const GemmDescriptor& d) {
  chord_gemm_descriptor_t c = chord_gemm_descriptor_init();
  c.family = enumerator<chord_family_t>(d.family);
  c.arch = enumerator<chord_arch_t>(d.arch);
  c.num_sms = d.num_sms;
  c.block_m = d.block_m.value_or(0);
  c.role = d.role ? static_cast<chord_role_t>(static_cast<int>(*d.role) + 1) : CHORD_ROLE_NONE;
  c.epilogue = enumerator<chord_epilogue_t>(d.epilogue);
  c.n = d.n;
  c.k = d.k;
  c.experts = d.experts;
  c.rows = d.rows;
  c.max_m = d.max_m;
  c.expected_m = d.expected_m;
  c.profile = d.profile.c_str();
  return c;
}

chord_layer_descriptor_t to_c(const LayerDescriptor& l) {
  chord_layer_descriptor_t c = chord_layer_descriptor_init();
  c.family = enumerator<chord_family_t>(l.family);
  c.arch = enumerator<chord_arch_t>(l.arch);
  c.num_sms = l.num_sms;
  c.role = static_cast<chord_role_t>(static_cast<int>(l.role) + 1);
  c.shard_axis = enumerator<chord_shard_axis_t>(l.shard.axis);
  c.shard_ways = l.shard.ways;
  c.experts = l.experts;
  c.top_k = l.top_k;
  c.gate_up_n = l.gate_up_n;
  c.gate_up_k = l.gate_up_k;
  c.down_n = l.down_n;
  c.down_k = l.down_k;
  c.rows = l.rows;
  c.max_m = l.max_m;
  c.expected_m = l.expected_m;
  c.block_m = l.block_m.value_or(0);
  c.gate_up_epilogue = enumerator<chord_epilogue_t>(l.gate_up_epilogue);
  c.down_epilogue = enumerator<chord_epilogue_t>(l.down_epilogue);
  return c;
}

chord_model_t to_c(const ModelConfig& model) {
  chord_model_t c = chord_model_init();
  copy_name(model.model, c.name);
  c.hidden_size = model.hidden_size;
  c.moe_intermediate_size = model.moe_intermediate_size;
  c.n_routed_experts = model.n_routed_experts;
  c.num_experts_per_tok = model.num_experts_per_tok;
  c.n_shared_experts = model.n_shared_experts;
  c.num_hidden_layers = model.num_hidden_layers;
  c.first_k_dense_replace = model.first_k_dense_replace;
  return c;
}

chord_published_schedule_t to_c(const PublishedSchedule& s) {
  chord_published_schedule_t c{};
  c.block_m = s.block_m;
  c.block_n = s.block_n;
  c.block_k = s.block_k;
  c.num_stages = s.num_stages;
  c.ctas_per_sm = s.ctas_per_sm.value_or(0);
  c.swap_ab = s.swap_ab.value_or(false) ? 1 : 0;
  c.stream_k = s.stream_k.value_or(false) ? 1 : 0;
  c.cluster_m = s.cluster_m.value_or(0);
  c.cluster_n = s.cluster_n.value_or(0);
  c.smem_bytes = s.smem_bytes.value_or(0);
  return c;
}

chord_kernel_schedule_t to_c(const KernelSchedule& s) {
  chord_kernel_schedule_t c{};
  c.mainloop = enumerator<chord_mainloop_t>(s.mainloop);
  c.block_m = s.block_m;
  c.tile_m = s.tile_m;
  c.tile_n = s.tile_n;
  c.widths = s.widths;
  c.width_step = s.width_step;
  c.slices_per_stage = s.slices_per_stage;
  c.stages = s.stages;
  c.dequantisation = enumerator<chord_dequantisation_t>(s.dequantisation);
  c.split = enumerator<chord_split_t>(s.split);
  c.release = enumerator<chord_release_t>(s.release);
  c.epilogue = enumerator<chord_epilogue_t>(s.epilogue);
  return c;
}

chord_origin_t to_c(Origin origin) { return enumerator<chord_origin_t>(origin); }

}  // namespace chord::c_api
