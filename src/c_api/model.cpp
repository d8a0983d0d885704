// Model facts and the shapes of a sharded layer.
#include <vector>

#include "heuristics/profile.h"
#include "src/c_api/convert.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;
using c_api::OutStruct;

namespace {

std::vector<std::string> indexed_profiles() {
  std::vector<std::string> names;
  const Result<heuristics::ProfileSet>& set = heuristics::published_profiles();
  if (!set.ok()) return names;
  for (const heuristics::Profile& profile : set->profiles)
    if (profile.family == Family::indexed) names.push_back(profile.name);
  return names;
}

}  // namespace

const char* chord_model_name(size_t index) {
  const char* found = nullptr;
  guarded("chord_model_name", [&](const Call&) -> Status {
    static const std::vector<std::string> names = builtin_model_names();
    if (index < names.size()) found = names[index].c_str();
    return {};
  });
  return found;
}

const char* chord_profile_name(size_t index) {
  const char* found = nullptr;
  guarded("chord_profile_name", [&](const Call&) -> Status {
    static const std::vector<std::string> names = indexed_profiles();
    if (index < names.size()) found = names[index].c_str();
    return {};
  });
  return found;
}

chord_status_t chord_model_builtin(const char* name, chord_model_t* model) {
  return guarded("chord_model_builtin", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(name, "name"));
    CHORD_TRY(const auto out, OutStruct<chord_model_t>::check(call, model, "model"));
    CHORD_TRY(const ModelConfig found, builtin_model(name));
    out.write(c_api::to_c(found));
    return {};
  });
}

chord_status_t chord_model_read(const char* json, size_t bytes, const char* origin,
                                chord_model_t* model) {
  return guarded("chord_model_read", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(json, "json"));
    CHORD_TRY(const auto out, OutStruct<chord_model_t>::check(call, model, "model"));
    CHORD_TRY(const ModelConfig read,
              read_model_config({json, bytes}, origin == nullptr ? "config.json" : origin));
    out.write(c_api::to_c(read));
    return {};
  });
}

chord_status_t chord_model_shard(const chord_model_t* model, chord_shard_axis_t axis, int32_t ways,
                                 chord_layer_descriptor_t* layer) {
  return guarded("chord_model_shard", [&](const Call& call) -> Status {
    CHORD_TRY(const ModelConfig config, c_api::model_of(call, model, "model"));
    CHORD_TRY(const ShardAxis known, c_api::axis_of(call, axis, "axis"));
    CHORD_TRY(const auto out, OutStruct<chord_layer_descriptor_t>::check(call, layer, "layer"));
    CHORD_TRY(const LayerDescriptor sharded, shard_layer(config, {.axis = known, .ways = ways}));
    out.write(c_api::to_c(sharded));
    return {};
  });
}
