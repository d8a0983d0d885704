// The JSON form of explanations and tables.
#include "src/explain.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "chord/fields.h"
#include "src/explain_model.h"

namespace chord {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
void set_if(Json& json, const char* field, const std::optional<Value>& value) {
  if (value) json[field] = *value;
}

Json schedule_json(const PublishedSchedule& schedule) {
  Json json{{"block_m", schedule.block_m},
            {"block_n", schedule.block_n},
            {"block_k", schedule.block_k},
            {"num_stages", schedule.num_stages}};
  set_if(json, "ctas_per_sm", schedule.ctas_per_sm);
  set_if(json, "swap_ab", schedule.swap_ab);
  set_if(json, "stream_k", schedule.stream_k);
  set_if(json, "cluster_m", schedule.cluster_m);
  set_if(json, "cluster_n", schedule.cluster_n);
  set_if(json, "smem_bytes", schedule.smem_bytes);
  return json;
}

Json kernel_json(const KernelSchedule& kernel, std::int64_t shared_bytes, int threads) {
  Json json;
  for_each_field(kernel, [&json](const char* field, auto value) {
    if constexpr (std::is_enum_v<decltype(value)>)
      json[field] = name(value);
    else
      json[field] = value;
  });
  json["shared_bytes"] = shared_bytes;
  json["threads"] = threads;
  return json;
}

// Size keys are those that the family's descriptor has; a table answers for all of them.
Json shape_json(const GemmDescriptor& d, bool with_rows) {
  Json json{{"family", name(d.family)}, {"arch", name(d.arch)}, {"num_sms", d.num_sms}};
  if (d.family == Family::indexed) json["profile"] = d.profile;
  json["n"] = d.n;
  json["k"] = d.k;
  json["experts"] = d.experts;
  if (d.epilogue != Epilogue::none) json["epilogue"] = name(d.epilogue);
  if (d.family == Family::grouped_masked) json["max_m"] = d.max_m;
  if (!with_rows) return json;
  if (d.family == Family::grouped_masked)
    json["expected_m"] = d.expected_m;
  else
    json["rows"] = d.rows;
  return json;
}

Json reasons_json(const std::vector<Reason>& reasons) {
  Json list = Json::array();
  for (const Reason& reason : reasons)
    list.push_back(Json{{"rule", reason.rule}, {"text", reason.text}});
  return list;
}

Json rejected_json(const std::vector<Rejected>& rejected) {
  Json list = Json::array();
  for (const Rejected& one : rejected)
    list.push_back(Json{{"candidate", one.candidate}, {"reason", one.reason}});
  return list;
}

Json unhonoured_json(const std::vector<Unhonoured>& fields) {
  Json list = Json::array();
  for (const Unhonoured& one : fields)
    list.push_back(Json{{"field", one.field},
                        {"published", one.published},
                        {"kernel", one.kernel},
                        {"reason", one.reason}});
  return list;
}

void add_identity(Json& json, const Explanation& e) {
  json["key"] = e.key ? Json(*e.key) : Json(nullptr);
  json["key_missing"] = e.key ? Json(nullptr) : Json(e.key_missing);
  json["cached"] = e.cached;
  json["registers"] = e.facts ? Json(e.facts->registers) : Json(nullptr);
  json["local_bytes"] = e.facts ? Json(e.facts->local_bytes) : Json(nullptr);
  json["compile_ms"] = e.facts ? Json(e.facts->compile_ms) : Json(nullptr);
  json["compiler"] = e.facts ? Json(e.facts->compiler) : Json(nullptr);
}

void add_floors(Json& json, const Explanation& e) {
  const Ceilings ceilings = ceilings_of(e.decision.descriptor.arch);
  json["active_experts"] = e.active_experts;
  json["padded_rows"] = e.padded_rows;
  json["padding_waste"] = e.padding_waste;
  json["memory_floor_us"] = e.memory_floor_us;
  json["tensor_floor_us"] = e.tensor_floor_us;
  json["predicted_us"] = e.predicted_us;
  json["ceilings"] = Json{{"read_tb_per_s", ceilings.read_tb_per_s},
                          {"bf16_tflop_per_s", ceilings.bf16_tflop_per_s},
                          {"launch_us", ceilings.launch_us},
                          {"measured", ceilings.measured},
                          {"source", ceilings.source}};
}

}  // namespace

Json json_of(const Explanation& e) {
  Json json = shape_json(e.decision.descriptor, true);
  json["schedule"] = schedule_json(e.decision.schedule);
  json["kernel"] = kernel_json(e.decision.kernel, e.shared_bytes, e.threads);
  json["origin"] = name(e.decision.origin);
  json["reasons"] = reasons_json(e.decision.reasons);
  json["rejected"] = rejected_json(e.decision.rejected);
  json["unhonoured"] = unhonoured_json(e.decision.unhonoured);
  add_identity(json, e);
  add_floors(json, e);
  return json;
}

Json json_of(const LayerExplanation& layer) {
  return Json{{"gate_up", json_of(layer.gate_up)},
              {"down", json_of(layer.down)},
              {"block_m", layer.block_m}};
}

Json json_of(const ScheduleTable& table) {
  Json rows = Json::array();
  for (const TableRow& row : table.rows)
    rows.push_back(Json{{"min_rows", row.min_rows},
                        {"max_rows", row.max_rows},
                        {"schedule", schedule_json(row.schedule)},
                        {"kernel", kernel_json(row.kernel, abi::shared_bytes(row.kernel),
                                               abi::threads(row.kernel))},
                        {"origin", name(row.origin)}});
  Json json = shape_json(table.descriptor, false);
  json["table"] = std::move(rows);
  return json;
}

Json json_of(const LayerTable& table) {
  return Json{{"gate_up", json_of(table.gate_up)}, {"down", json_of(table.down)}};
}

Json json_of(const Error& error) {
  return Json{{"error", Json{{"code", name(error.code)},
                             {"asked", error.asked},
                             {"found", error.found},
                             {"help", error.help}}}};
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const Explanation& explanation) { return text_of(json_of(explanation)); }
std::string to_json(const LayerExplanation& layer) { return text_of(json_of(layer)); }
std::string to_json(const ScheduleTable& table) { return text_of(json_of(table)); }
std::string to_json(const LayerTable& table) { return text_of(json_of(table)); }

}  // namespace chord
