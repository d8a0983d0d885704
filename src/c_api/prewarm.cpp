// Prewarming a deployment, and what its report says.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/c_api/convert.h"
#include "src/c_api/handles.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;
using c_api::OutStruct;

namespace {

// A list of the deployment; NULL leaves the default of the C++ face.
template <class Theirs, class Ours, class Convert>
Status copy_list(const Call& call, const Theirs* values, std::size_t count,
                 std::string_view argument, Convert convert, std::vector<Ours>& list) {
  if (values == nullptr && count == 0) return {};
  CHORD_TRY(call.need(values, argument));
  list.clear();
  for (std::size_t i = 0; i < count; ++i) {
    CHORD_TRY(Ours value, convert(call, values[i], fmt::format("{}[{}]", argument, i)));
    list.push_back(value);
  }
  return {};
}

Result<Role> stated_role(const Call& call, const chord_role_t& role, std::string_view argument) {
  return call.choose<Role>(role, argument, 3, CHORD_ROLE_DECODE);
}

Result<Deployment> deployment_of(const Call& call, const chord_deployment_t* deployment) {
  CHORD_TRY(const chord_deployment_t c, c_api::read_struct(call, deployment, "deployment"));
  Deployment d;
  CHORD_TRY(d.model, c_api::model_of(call, c.model, "deployment.model"));
  CHORD_TRY(d.shard.axis, c_api::axis_of(call, c.shard_axis, "deployment.shard_axis"));
  d.shard.ways = c.shard_ways;
  CHORD_TRY(copy_list(call, c.roles, c.role_count, "deployment.roles", stated_role, d.roles));
  CHORD_TRY(copy_list(call, c.archs, c.arch_count, "deployment.archs", c_api::arch_of, d.archs));
  CHORD_TRY(copy_list(call, c.families, c.family_count, "deployment.families", c_api::family_of,
                      d.families));
  CHORD_TRY(d.gate_up_epilogue,
            c_api::epilogue_of(call, c.gate_up_epilogue, "deployment.gate_up_epilogue"));
  CHORD_TRY(d.down_epilogue, c_api::epilogue_of(call, c.down_epilogue, "deployment.down_epilogue"));
  d.min_rows = c.min_rows;
  d.max_rows = c.max_rows;
  d.num_sms = c.num_sms;
  return d;
}

std::function<void(const PrewarmProgress&)> progress_of(chord_prewarm_callback_t progress,
                                                        void* user) {
  if (progress == nullptr) return {};
  return [progress, user](const PrewarmProgress& p) {
    const chord_prewarm_progress_t c{sizeof(chord_prewarm_progress_t),
                                     p.done,
                                     p.total,
                                     p.key.c_str(),
                                     p.label.c_str(),
                                     p.compile_ms,
                                     p.hit ? 1 : 0,
                                     p.failed ? 1 : 0};
    progress(&c, user);
  };
}

Result<PrewarmOptions> prewarm_options_of(const Call& call, const chord_prewarm_options_t* from) {
  PrewarmOptions options;
  if (from == nullptr) return options;
  CHORD_TRY(const chord_prewarm_options_t c, c_api::read_struct(call, from, "options"));
  CHORD_TRY(options.dry_run, call.flag(c.dry_run, "options.dry_run"));
  CHORD_TRY(options.check, call.flag(c.check, "options.check"));
  if (c.jobs < 0)
    return call.wrong("options.jobs", fmt::format("is {}", c.jobs),
                      "compiles at a time; 0: cores, bounded by memory");
  options.jobs = c.jobs;
  options.manifest = c_api::text_of(c.manifest).value_or("");
  options.progress = progress_of(c.progress, c.progress_user);
  return options;
}

}  // namespace

chord_status_t chord_prewarm(chord_handle_t handle, const chord_deployment_t* deployment,
                             const chord_prewarm_options_t* options, chord_report_t* report) {
  return guarded("chord_prewarm", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(report, "report"));
    CHORD_TRY(const Deployment wanted, deployment_of(call, deployment));
    CHORD_TRY(const PrewarmOptions how, prewarm_options_of(call, options));
    CHORD_TRY(PrewarmReport done, handle->engine.prewarm(wanted, how));
    *report = new chord_report{std::move(done)};
    return {};
  });
}

chord_status_t chord_report_get_info(chord_report_t report, chord_report_info_t* info) {
  return guarded("chord_report_get_info", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(report, "report"));
    CHORD_TRY(const auto out, OutStruct<chord_report_info_t>::check(call, info, "info"));
    const PrewarmReport& r = report->report;
    chord_report_info_t c = chord_report_info_init();
    c.keys = r.keys;
    c.hits = r.hits;
    c.compiles = r.compiles;
    c.failed = r.failed;
    c.missing = static_cast<std::int64_t>(r.missing.size());
    c.present = r.keys - c.missing;
    c.shared = r.shared;
    c.not_shared = r.not_shared;
    c.seconds = r.seconds;
    c.manifest = r.manifest.c_str();
    out.write(c);
    return {};
  });
}

chord_status_t chord_report_get_missing(chord_report_t report, int64_t index,
                                        chord_missing_t* missing) {
  return guarded("chord_report_get_missing", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(report, "report"));
    CHORD_TRY(const auto out, OutStruct<chord_missing_t>::check(call, missing, "missing"));
    const auto count = static_cast<std::int64_t>(report->report.missing.size());
    if (index < 0 || index >= count)
      return call.wrong("index", fmt::format("is {}", index),
                        fmt::format("{} kernels are missing, counted from 0", count));
    const PrewarmMissing& one = report->report.missing[static_cast<std::size_t>(index)];
    chord_missing_t c = chord_missing_init();
    c.key = one.key.c_str();
    c.label = one.label.c_str();
    c.reason = one.reason.c_str();
    out.write(c);
    return {};
  });
}

void chord_report_destroy(chord_report_t report) { delete report; }
