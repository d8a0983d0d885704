// Plans and tables: the pure part of the library.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/c_api/convert.h"
#include "src/c_api/handles.h"
#include "src/explain.h"
#include "src/explain_text.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;
using c_api::OutStruct;

namespace {

// More than any GPU has, and far from where a size overflows.
constexpr int kMostSms = 4096;

chord_table_row_t row_of(const TableRow& row) {
  chord_table_row_t c = chord_table_row_init();
  c.min_rows = row.min_rows;
  c.max_rows = row.max_rows;
  c.origin = c_api::to_c(row.origin);
  c.published = c_api::to_c(row.schedule);
  c.kernel = c_api::to_c(row.kernel);
  return c;
}

Status copy_rows(const Call& call, const ScheduleTable& table, chord_table_row_t* rows,
                 std::size_t capacity) {
  if (rows == nullptr && capacity == 0) return {};
  CHORD_TRY(call.need(rows, "rows"));
  if (capacity < table.rows.size())
    return call.wrong("capacity", fmt::format("is {} rows", capacity),
                      fmt::format("{} are needed", table.rows.size()));
  CHORD_TRY(const auto first, OutStruct<chord_table_row_t>::check(call, rows, "rows[0]"));
  const std::size_t stride = first.caller_bytes();
  auto* to = reinterpret_cast<char*>(rows);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    first.write_to(to + i * stride, row_of(table.rows[i]));
  return {};
}

}  // namespace

chord_status_t chord_plan_gemm(chord_handle_t handle, const chord_gemm_descriptor_t* descriptor,
                               chord_plan_t* plan) {
  return guarded("chord_plan_gemm", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(const GemmDescriptor wanted, c_api::descriptor_of(call, descriptor));
    CHORD_TRY(Decision decision, handle->engine.plan(wanted));
    *plan = new chord_plan{std::move(decision)};
    return {};
  });
}

chord_status_t chord_plan_layer(chord_handle_t handle, const chord_layer_descriptor_t* layer,
                                chord_plan_t* gate_up, chord_plan_t* down, int32_t* block_m) {
  return guarded("chord_plan_layer", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(gate_up, "gate_up"));
    CHORD_TRY(call.need(down, "down"));
    CHORD_TRY(const LayerDescriptor wanted, c_api::layer_of(call, layer));
    CHORD_TRY(LayerPlan pair, handle->engine.plan_layer(wanted));
    auto first = std::make_unique<chord_plan>(chord_plan{std::move(pair.gate_up)});
    *down = new chord_plan{std::move(pair.down)};
    *gate_up = first.release();
    if (block_m != nullptr) *block_m = pair.block_m;
    return {};
  });
}

void chord_plan_destroy(chord_plan_t plan) { delete plan; }

chord_status_t chord_plan_get_info(chord_plan_t plan, chord_plan_info_t* info) {
  return guarded("chord_plan_get_info", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(const auto out, OutStruct<chord_plan_info_t>::check(call, info, "info"));
    const Decision& decision = plan->decision;
    chord_plan_info_t c = chord_plan_info_init();
    c.origin = c_api::to_c(decision.origin);
    c.block_m = decision.kernel.block_m;
    c.threads = abi::threads(decision.kernel);
    c.shared_bytes = abi::shared_bytes(decision.kernel);
    c.published = c_api::to_c(decision.schedule);
    c.kernel = c_api::to_c(decision.kernel);
    out.write(c);
    return {};
  });
}

chord_status_t chord_plan_get_descriptor(chord_plan_t plan, chord_gemm_descriptor_t* descriptor) {
  return guarded("chord_plan_get_descriptor", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(const auto out,
              OutStruct<chord_gemm_descriptor_t>::check(call, descriptor, "descriptor"));
    out.write(c_api::to_c(plan->decision.descriptor));
    return {};
  });
}

chord_status_t chord_plan_workspace(chord_plan_t plan, int32_t num_sms, size_t* bytes,
                                    size_t* flag_bytes) {
  return guarded("chord_plan_workspace", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(call.need(bytes, "bytes"));
    CHORD_TRY(call.need(flag_bytes, "flag_bytes"));
    if (num_sms < 0 || num_sms > kMostSms)
      return call.wrong("num_sms", fmt::format("is {}", num_sms),
                        fmt::format("1 to {}; 0 for that of the descriptor", kMostSms));
    // A launch has one persistent CTA per SM.
    const int ctas = num_sms == 0 ? plan->decision.descriptor.num_sms : num_sms;
    *bytes = static_cast<std::size_t>(abi::workspace_bytes(plan->decision.kernel, ctas));
    *flag_bytes = static_cast<std::size_t>(abi::workspace_flag_bytes(ctas));
    return {};
  });
}

chord_status_t chord_plan_explain(chord_handle_t handle, chord_plan_t plan, chord_format_t format,
                                  char* text, size_t capacity, size_t* needed) {
  return guarded("chord_plan_explain", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(const int form, call.choose<int>(format, "format", 2));
    CHORD_TRY(const Explanation explanation, handle->engine.explain(plan->decision));
    return call.copy_text(form == CHORD_FORMAT_JSON ? to_json(explanation) : to_text(explanation),
                          text, capacity, needed);
  });
}

chord_status_t chord_schedule_table(chord_handle_t handle,
                                    const chord_gemm_descriptor_t* descriptor,
                                    chord_table_row_t* rows, size_t capacity, size_t* count) {
  return guarded("chord_schedule_table", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(count, "count"));
    CHORD_TRY(const GemmDescriptor wanted, c_api::descriptor_of(call, descriptor));
    CHORD_TRY(const ScheduleTable table, handle->engine.schedule_table(wanted));
    *count = table.rows.size();
    return copy_rows(call, table, rows, capacity);
  });
}
