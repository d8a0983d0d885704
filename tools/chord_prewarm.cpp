// chord-prewarm: makes the cubins of a deployment beforehand, so that serving compiles nothing.
// Runs where there is no GPU and no driver; with --check also where there is no compiler.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "chord/engine.h"
#include "chord/model.h"
#include "src/explain.h"
#include "tools/cli.h"
#include "tools/cli_model.h"
#include "tools/cli_progress.h"

namespace chord::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  std::string role = "decode";
  std::vector<std::string> archs, families;
  std::string rows, cache_dir, manifest;
  int jobs = 0, num_sms = 0;
  bool dry_run = false, check = false, json = false;
};

constexpr const char* kExamples =
    "  chord-prewarm --model kimi-k2.5 --ep 8 --role decode --arch sm_90a --arch sm_103a\n"
    "  chord-prewarm --config /models/kimi/config.json --tp 8 --role both --jobs 16"
    " --cache-dir /image/chord\n"
    "  chord-prewarm --model kimi-k2.5 --ep 8 --check --json";

void add_flags(CLI::App& app, Flags& flags) {
  add_model_flags(app, flags.model);
  const auto text = [&](const char* flag, auto& value, const char* help, const char* type) {
    return app.add_option(flag, value, help)->type_name(type)->check(flag_text());
  };
  text("--role", flags.role, "decode (default), prefill, mix, or both (decode and prefill)",
       "NAME");
  text("--arch", flags.archs, "sm_90a (default), sm_100a or sm_103a; may be repeated", "NAME")
      ->expected(1)
      ->take_all();
  text("--family", flags.families,
       "indexed (default), grouped_contiguous or grouped_masked; may be repeated", "NAME")
      ->expected(1)
      ->take_all();
  text("--rows", flags.rows, "routed rows to cover, both ends included; default: all", "MIN:MAX");
  app.add_option("--num-sms", flags.num_sms, "SMs of the GPU; default 132, on Blackwell 148")
      ->type_name("COUNT")
      ->transform(whole_number(1, 4096));
  app.add_option("--jobs", flags.jobs, "parallel compiles; default: cores, bounded by memory")
      ->type_name("COUNT")
      ->transform(whole_number(1, 1024));
  text("--cache-dir", flags.cache_dir, "cache folder to fill", "FOLDER");
  text("--manifest", flags.manifest, "file that lists what is covered; default: in the cache",
       "FILE");
  app.add_flag("--dry-run", flags.dry_run, "list the keys, compile and write nothing");
  app.add_flag("--check", flags.check, "read and verify every key; exit 3 when one is missing");
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

Error bad_rows(const std::string& text, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("--rows {}", text), std::move(found),
               fmt::format("give MIN:MAX with 1 <= MIN <= MAX <= {}", kMaxTableRows)};
}

Result<std::int64_t> parse_count(const std::string& all, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return bad_rows(all, fmt::format("'{}' is not a number", text));
  return value;
}

Status set_rows(const std::string& text, Deployment& deployment) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return bad_rows(text, "no colon");
  CHORD_TRY(deployment.min_rows, parse_count(text, std::string_view(text).substr(0, colon)));
  CHORD_TRY(deployment.max_rows, parse_count(text, std::string_view(text).substr(colon + 1)));
  if (deployment.min_rows < 1) return bad_rows(text, "MIN is below 1");
  if (deployment.max_rows > kMaxTableRows) return bad_rows(text, "MAX is too large");
  if (deployment.min_rows > deployment.max_rows) return bad_rows(text, "MIN is above MAX");
  return {};
}

Result<std::vector<Role>> parse_roles(const std::string& text) {
  if (text == "both") return std::vector<Role>{Role::decode, Role::prefill};
  auto role = parse_role(text);
  if (!role) {
    role.error().help += ", both";
    return std::move(role).error();
  }
  return std::vector<Role>{*role};
}

Result<Deployment> deployment_of(const Flags& flags) {
  if (flags.dry_run && flags.check)
    return Error{ErrorCode::invalid_argument, "a prewarm", "both --dry-run and --check",
                 "--dry-run lists the keys, --check reads them; give one"};
  Deployment deployment;
  CHORD_TRY(deployment.model, load_model(flags.model));
  CHORD_TRY(deployment.shard, shard_of(flags.model));
  CHORD_TRY(deployment.roles, parse_roles(flags.role));
  CHORD_TRY(set_rows(flags.rows, deployment));
  deployment.num_sms = flags.num_sms;
  if (!flags.archs.empty()) deployment.archs.clear();
  for (const std::string& text : flags.archs) {
    CHORD_TRY(const Architecture arch, parse_architecture(text));
    deployment.archs.push_back(arch);
  }
  if (!flags.families.empty()) deployment.families.clear();
  for (const std::string& text : flags.families) {
    CHORD_TRY(const Family family, parse_family(text));
    deployment.families.push_back(family);
  }
  return deployment;
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
  text += fmt::format("cache     {}\n", engine.cache_dir());
  if (!report.manifest.empty()) text += fmt::format("manifest  {}\n", report.manifest);
  return text;
}

int exit_code_of(const PrewarmReport& report, const Flags& flags) {
  if (report.failed > 0) return kFailed;
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
  CHORD_TRY(const Deployment deployment, deployment_of(flags));
  Options options;
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
