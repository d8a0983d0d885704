// A layer as a pair: one routing serves gate/up and down, so both run with one block_m.
#include <fmt/format.h>

#include "heuristics/solver.h"

namespace chord::heuristics {
namespace {

// From a model's architecture, shard axis and role to the published profile that comes closest; a
// role or shape that the profile lacks is answered by its fallback.
const char* profile_name(const LayerDescriptor& layer) {
  if (is_blackwell(layer.arch)) return "blackwell_decode_ep8";
  if (layer.shard.axis == ShardAxis::tensor) return "h200_tp8";
  return layer.role == Role::decode ? "h200_decode_ep8" : "h200_prefill_ep8";
}

GemmDescriptor projection(const LayerDescriptor& layer, std::int64_t n, std::int64_t k,
                          Epilogue epilogue) {
  GemmDescriptor d;
  d.family = layer.family;
  d.arch = layer.arch;
  d.num_sms = layer.num_sms;
  d.n = n;
  d.k = k;
  d.experts = layer.experts;
  d.rows = layer.rows;
  d.max_m = layer.max_m;
  d.expected_m = layer.expected_m;
  d.block_m = layer.block_m;
  d.epilogue = epilogue;
  if (layer.family == Family::indexed) {
    d.profile = profile_name(layer);
    d.role = layer.role;
  }
  return d;
}

bool has_pair(const Profile& profile, const LayerDescriptor& layer) {
  bool gate_up = false;
  bool down = false;
  for (const ProfileShape& shape : profile.shapes) {
    gate_up = gate_up || (shape.projection == "gate_up" && shape.n == layer.gate_up_n &&
                          shape.k == layer.gate_up_k);
    down =
        down || (shape.projection == "down" && shape.n == layer.down_n && shape.k == layer.down_k);
  }
  return gate_up && down;
}

Status check_axis(const ProfileSet& profiles, const LayerDescriptor& layer) {
  for (const Profile& profile : profiles.profiles) {
    if (profile.family != Family::indexed || profile.axis == layer.shard.axis) continue;
    if (!has_pair(profile, layer)) continue;
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("layer sharded {}{}", name(layer.shard.axis), layer.shard.ways),
        fmt::format("{}x{} with {}x{} is the published pair of {}, which is {}", layer.gate_up_n,
                    layer.gate_up_k, layer.down_n, layer.down_k, profile.name, name(profile.axis)),
        fmt::format("state the shard axis {}, or another shape", name(profile.axis))};
  }
  return {};
}

Status check_layer(const LayerDescriptor& layer) {
  const auto wrong = [](std::string found, const char* help) {
    return Error{ErrorCode::invalid_argument, "plan of a layer", std::move(found), help};
  };
  if (layer.shard.ways < 1)
    return wrong(fmt::format("shard.ways is {}", layer.shard.ways), "it has to be 1 or more");
  if (layer.top_k < 0)
    return wrong(fmt::format("top_k is {}", layer.top_k), "it has to be 0 (not known) or more");
  if (layer.gate_up_epilogue != Epilogue::none && layer.gate_up_epilogue != Epilogue::swiglu)
    return wrong(fmt::format("gate_up_epilogue is {}", name(layer.gate_up_epilogue)),
                 "gate/up has none or swiglu");
  if (layer.down_epilogue != Epilogue::none && layer.down_epilogue != Epilogue::weighted)
    return wrong(fmt::format("down_epilogue is {}", name(layer.down_epilogue)),
                 "down has none or weighted");
  return {};
}

}  // namespace

Result<Projections> projections(const ProfileSet& profiles, const LayerDescriptor& layer) {
  CHORD_TRY(check_layer(layer));
  CHORD_TRY(check_axis(profiles, layer));
  return Projections{projection(layer, layer.gate_up_n, layer.gate_up_k, layer.gate_up_epilogue),
                     projection(layer, layer.down_n, layer.down_k, layer.down_epilogue)};
}

Result<LayerPlan> solve_layer(const ProfileSet& profiles, const LayerDescriptor& layer,
                              const Overrides& overrides, Policy policy) {
  CHORD_TRY(Projections pair, projections(profiles, layer));
  LayerPlan plan;
  CHORD_TRY(plan.gate_up, solve(profiles, pair.gate_up, overrides, policy));
  plan.block_m = plan.gate_up.schedule.block_m;
  if (down_takes_block_m(overrides, plan.gate_up.origin)) pair.down.block_m = plan.block_m;
  CHORD_TRY(plan.down, solve(profiles, pair.down, overrides, policy));
  return plan;
}

}  // namespace chord::heuristics
