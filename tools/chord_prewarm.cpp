// chord-prewarm: makes the cubins of a deployment beforehand, so that serving compiles nothing.
// Runs where there is no GPU and no driver; with --check also where there is no compiler.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chord/engine.h"
#include "src/explain.h"
#include "tools/cli.h"
#include "tools/cli_deployment.h"
#include "tools/cli_progress.h"
#include "tools/cli_remote.h"

namespace chord::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  DeploymentFlags deployment;
  RemoteFlags remote;
  std::string cache_dir, manifest;
  int jobs = 0;
  bool dry_run = false, check = false, remote_write = false, json = false;
};

constexpr const char* kExamples =
    "  chord-prewarm --model kimi-k2.5 --ep 8 --role decode --arch sm_90a --arch sm_103a\n"
    "  chord-prewarm --config /models/kimi/config.json --tp 8 --role both --jobs 16"
    " --cache-dir /image/chord\n"
    "  chord-prewarm --model kimi-k2.5 --ep 8 --check --json";

void add_flags(CLI::App& app, Flags& flags) {
  add_deployment_flags(app, flags.deployment);
  const auto text = [&](const char* flag, auto& value, const char* help, const char* type) {
    return app.add_option(flag, value, help)->type_name(type)->check(flag_text());
  };
  app.add_option("--jobs", flags.jobs, "parallel compiles; default: cores, bounded by memory")
      ->type_name("COUNT")
      ->transform(whole_number(1, 1024));
  text("--cache-dir", flags.cache_dir, "cache folder to fill", "FOLDER");
  text("--manifest", flags.manifest, "file that lists what is covered; default: in the cache",
       "FILE");
  add_remote_flag(app, flags.remote);
  app.add_flag("--remote-write", flags.remote_write,
               "also write what the remote store lacks; needs CHORD_SIGNING_KEY");
  app.add_flag("--dry-run", flags.dry_run, "list the keys, compile and write nothing");
  app.add_flag("--check", flags.check, "read and verify every key; exit 3 when one is missing");
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

Status check_flags(const Flags& flags) {
  if (flags.dry_run && flags.check)
    return bad_flags("a prewarm", "both --dry-run and --check",
                     "--dry-run lists the keys, --check reads them; give one");
  if (flags.remote_write && (flags.dry_run || flags.check))
    return bad_flags("a prewarm that writes nothing", "--remote-write", "leave it out");
  return {};
}

std::string step_text(const PrewarmProgress& step, const Flags& flags) {
  if (step.failed) return fmt::format("FAILED {}", step.label);
  if (flags.dry_run) return fmt::format("{} {}", step.key, step.label);
  if (step.hit) return fmt::format("cached {}", step.label);
  if (flags.check) return fmt::format("missing {}", step.label);
  return fmt::format("compiled {} ({:.0f} ms)", step.label, step.compile_ms);
}

Json report_json(const PrewarmReport& report, const Engine& engine) {
  Json missing = Json::array();
  for (const PrewarmMissing& one : report.missing)
    missing.push_back(Json{{"key", one.key}, {"label", one.label}, {"reason", one.reason}});
  return Json{{"keys", report.keys},
              {"hits", report.hits},
              {"compiles", report.compiles},
              {"failed", report.failed},
              {"shared", report.shared},
              {"not_shared", report.not_shared},
              {"seconds", report.seconds},
              {"missing", std::move(missing)},
              {"manifest", report.manifest.empty() ? Json(nullptr) : Json(report.manifest)},
              {"cache_dir", engine.cache_dir()}};
}

std::string report_text(const PrewarmReport& report, const Engine& engine, const Flags& flags) {
  std::string text;
  for (const PrewarmMissing& one : report.missing)
    text += fmt::format("missing {} {}: {}\n", one.key, one.label, one.reason);
  if (flags.dry_run)
    text += fmt::format("{} kernels; nothing was compiled or written\n", report.keys);
  else
    text += fmt::format("{} kernels: {} in the cache, {} compiled, {} failed, {:.2f} s\n",
                        report.keys, report.hits, report.compiles, report.failed, report.seconds);
  if (flags.remote_write)
    text += fmt::format("remote    {} kernels of the folder were not there and are now\n",
                        report.shared);
  text += fmt::format("cache     {}\n", engine.cache_dir());
  if (report.not_shared > 0)
    text += fmt::format("FAILED    {} kernels did not reach the remote store\n", report.not_shared);
  if (!report.manifest.empty()) text += fmt::format("manifest  {}\n", report.manifest);
  return text;
}

int exit_code_of(const PrewarmReport& report, const Flags& flags) {
  if (report.failed > 0 || report.not_shared > 0) return kFailed;
  return flags.check && !report.missing.empty() ? kNotCovered : kOk;
}

Result<PrewarmReport> prewarm(Engine& engine, const Deployment& deployment, const Flags& flags) {
  PrewarmOptions options;
  options.dry_run = flags.dry_run;
  options.check = flags.check;
  options.jobs = flags.jobs;
  options.manifest = flags.manifest;
  if (flags.json) return engine.prewarm(deployment, options);
  Progress progress(stdout, is_terminal(stdout), terminal_columns(stdout));
  options.progress = [&](const PrewarmProgress& step) {
    progress.step(step.done, step.total, step_text(step, flags));
  };
  return engine.prewarm(deployment, options);
}

Result<int> run(const Flags& flags) {
  CHORD_TRY(check_flags(flags));
  CHORD_TRY(const Deployment deployment, deployment_of(flags.deployment));
  Options options;
  options.manifest = "";  // of a deployment that is only being made
  CHORD_TRY(apply(flags.remote, options));
  if (flags.remote_write) options.remote_write = true;
  if (!flags.cache_dir.empty()) options.cache_dir = flags.cache_dir;
  CHORD_TRY(Engine engine, Engine::create(std::move(options)));
  CHORD_TRY(const PrewarmReport report, prewarm(engine, deployment, flags));
  const int code = exit_code_of(report, flags);
  if (flags.json) return print_json(report_json(report, engine), code);
  return print_text(report_text(report, engine, flags), code);
}

}  // namespace
}  // namespace chord::tools

int main(int argc, char** argv) {
  using namespace chord::tools;
  CLI::App app{"Compiles the kernels of a deployment into the cubin cache.", "chord-prewarm"};
  Flags flags;
  add_flags(app, flags);
  if (const auto code = parse_flags(app, argc, argv)) return *code;
  const auto done = run(flags);
  return done ? *done : report(done.error(), flags.json);
}
