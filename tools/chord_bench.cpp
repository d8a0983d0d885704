// chord-bench: is the result right, and how long does it take? Cases are data (tools/cases). Each
// is checked against a reference first and timed only if right; beside the time stand a pure read
// of the same bytes in the same run and the published times.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/explain.h"
#include "tools/bench/host_cost.h"
#include "tools/bench/results.h"
#include "tools/bench/watchdog.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using bench::BenchCase;
using bench::Json;
using bench::Measurement;

struct Flags {
  std::vector<std::string> cases, kernel_fields;
  std::string set = "decode", flush = "write", policy = "measured", merge, cache_dir;
  bench::MeasureOptions measure;
  bool list = false, prewarm = false, host_cost = false, json = false;
};

constexpr std::chrono::seconds kLongestCase{60};

constexpr const char* kExamples =
    "  chord-bench --cases 'h200_decode_ep8 gate_up' --graph\n"
    "  chord-bench --cases 'e48 tokens_per_gpu 20' --kernel-fields stages=4 --kernel-fields"
    " split=even\n"
    "  chord-bench --complete --cublas --merge tools/results/h200.json\n"
    "  chord-bench --ablation --cases 'e48 tokens_per_gpu 20' --json\n"
    "  chord-bench --prewarm --cache-dir /image/chord";

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--cases", flags.cases, "cases whose name has this text; may be repeated")
      ->type_name("TEXT")
      ->check(flag_text())
      ->expected(1)
      ->take_all();
  app.add_option("--set", flags.set, "decode (default), prefill or all")
      ->check(CLI::IsMember({"decode", "prefill", "all"}))
      ->type_name("NAME");
  app.add_flag("--list", flags.list, "list the chosen cases; needs no GPU");
  app.add_option("--iterations", flags.measure.iterations, "timed launches per case; default 60")
      ->type_name("COUNT")
      ->transform(whole_number(1, 100000));
  app.add_option("--flush", flags.flush, "how the L2 is emptied: write (default) or read")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--policy", flags.policy, "measured (default) or published")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--kernel-fields", flags.kernel_fields,
                 "pin a kernel field: mainloop, tile_m, tile_n, widths, width_step, "
                 "slices_per_stage, stages, dequantisation, split, release; may be repeated")
      ->type_name("KEY=VALUE")
      ->check(flag_text())
      ->expected(1)
      ->take_all();
  app.add_flag("--graph", flags.measure.graph, "time a CUDA graph's replay as well");
  app.add_flag("--complete", flags.measure.complete,
               "time read flush, graph replay and the published policy as well");
  app.add_flag("--cublas", flags.measure.cublas,
               "time cuBLAS in BF16 where all experts have as many rows");
  app.add_flag("--ablation", flags.measure.ablation,
               "time the kernel with parts of its main loop taken away as well");
  app.add_flag("--host-cost", flags.host_cost,
               "time only the host: launch, memo-hit prepare, plan, a bare driver launch");
  app.add_flag("--check-only", flags.measure.check_only, "check the results, time nothing");
  app.add_option("--merge", flags.merge, "results file to keep the newest row of every case in")
      ->type_name("FILE")
      ->check(flag_text());
  app.add_flag("--prewarm", flags.prewarm, "compile what the cases need; needs no GPU");
  app.add_option("--cache-dir", flags.cache_dir, "cache folder to use")
      ->type_name("FOLDER")
      ->check(flag_text());
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

// Combinations that would write a file which does not say what it says.
Status check_merge(const Flags& flags) {
  if (flags.merge.empty()) return {};
  if (!flags.kernel_fields.empty())
    return bad_flags("--merge", "--kernel-fields", "a sweep is no result of the policy");
  if (flags.measure.check_only) return bad_flags("--merge", "--check-only", "merge needs times");
  if (flags.measure.complete && (flags.flush != "write" || flags.policy != "measured"))
    return bad_flags("--merge with --complete", "another flush or policy than the defaults",
                     "--complete measures the others itself");
  CHORD_TRY(bench::read_results(flags.merge));
  return {};
}

// Ablations are a short table of their own.
Status check_ablation(const Flags& flags) {
  if (!flags.measure.ablation) return {};
  const std::string other = first_set({{"--merge", !flags.merge.empty()},
                                       {"--check-only", flags.measure.check_only},
                                       {"--complete", flags.measure.complete},
                                       {"--graph", flags.measure.graph},
                                       {"--cublas", flags.measure.cublas},
                                       {"--host-cost", flags.host_cost}});
  if (other.empty()) return {};
  return bad_flags("--ablation", other, "run them apart; --json keeps what --ablation measures");
}

Result<Options> options_of(const Flags& flags) {
  Options options;
  CHORD_TRY(options.policy, parse_policy(flags.policy));
  if (!flags.cache_dir.empty()) options.cache_dir = flags.cache_dir;
  if (flags.kernel_fields.empty()) return options;
  Overrides overrides;
  for (const std::string& field : flags.kernel_fields)
    CHORD_TRY(set_kernel_field(overrides, field));
  options.overrides = overrides;
  return options;
}

Result<int> list_cases(const std::vector<BenchCase>& cases, bool json) {
  if (json) {
    Json labels = Json::array();
    for (const BenchCase& one : cases) labels.push_back(one.label());
    return print_json(Json{{"cases", labels}});
  }
  std::string text;
  for (const BenchCase& one : cases)
    text += fmt::format("{:<8} {} ({} rows)\n", one.set, one.label(), one.routed_rows);
  return print_text(text);
}

std::vector<BenchCase> cases_for(const std::vector<BenchCase>& cases, Architecture arch) {
  std::vector<BenchCase> chosen;
  for (const BenchCase& one : cases)
    if (one.runs_on(arch)) chosen.push_back(one);
  return chosen;
}

Result<int> prewarm(const Flags& flags, Options options, const std::vector<BenchCase>& cases) {
  constexpr Architecture kArch = Architecture::sm_90a;
  CHORD_TRY(const Engine engine, Engine::create(options));
  CHORD_TRY(const auto code, bench::DeviceCode::create(engine));
  std::vector<cubin::Recipe> recipes;
  for (const BenchCase& one : cases_for(cases, kArch)) {
    CHORD_TRY(const Decision decision,
              bench::plan_case(engine, one, kArch, default_num_sms(kArch)));
    CHORD_TRY(cubin::Recipe recipe, cubin::gemm_recipe(decision));
    recipes.push_back(std::move(recipe));
    if (!flags.measure.ablation) continue;
    for (const bench::Ablation ablation : bench::kAblations) {
      CHORD_TRY(cubin::Recipe ablated, bench::ablation_recipe(ablation, decision));
      recipes.push_back(std::move(ablated));
    }
  }
  CHORD_TRY(cubin::Recipe packer,
            cubin::pack_recipe(kArch, CodeSource::words, ScaleSource::row_major));
  recipes.push_back(std::move(packer));
  CHORD_TRY(const bench::PrewarmCount count, code->prewarm(kArch, std::move(recipes)));
  if (flags.json) return print_json(Json{{"kernels", count.kernels}, {"compiles", count.compiles}});
  return print_text(fmt::format("{} kernels, {} compiled now, in {}\n", count.kernels,
                                count.compiles, engine.cache_dir()));
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

std::string driver_text(const cuda::DriverApi& driver) {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string release = bench::driver_release(text);
  const std::string cuda =
      fmt::format("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
  return release.empty() ? cuda : fmt::format("{}, {}", release, cuda);
}

Result<bench::RunHeader> header_of(const Flags& flags, const std::string& command,
                                   const bench::Rig& rig, const std::vector<Measurement>& all) {
  bench::RunHeader header;
  header.gpu = rig.device.name;
  header.driver = driver_text(*rig.driver);
  header.command = command;
  header.date = today();
  CHORD_TRY(header.flush, bench::parse_flush(flags.flush));
  CHORD_TRY(header.policy, parse_policy(flags.policy));
  if (!all.empty()) {
    header.nvrtc = all.front().compiler;
    header.kernel_digest = all.front().kernel_digest;
  }
  return header;
}

Status merge_into_file(const Flags& flags, const Json& run) {
  if (flags.merge.empty()) return {};
  CHORD_TRY(Json file, bench::read_results(flags.merge));
  CHORD_TRY(file, bench::merge(std::move(file), run));
  return bench::write_results(flags.merge, file);
}

Result<int> finish(const Flags& flags, const Json& run, const std::vector<Measurement>& all) {
  bool is_right = true;
  for (const Measurement& m : all) is_right = is_right && m.comparison.violation().empty();
  if (is_right) CHORD_TRY(merge_into_file(flags, run));
  const int code = is_right ? kOk : kFailed;
  if (flags.json) return print_json(run, code);
  return print_text(flags.measure.ablation ? bench::ablation_foot(all) : bench::table_foot(all),
                    code);
}

Result<int> measure(const Flags& flags, const std::string& command, Options options,
                    const std::vector<BenchCase>& asked) {
  bench::Watchdog watchdog(kFailed);
  watchdog.watch("opening the GPU", kLongestCase);
  CHORD_TRY(const std::unique_ptr<bench::Rig> rig, bench::Rig::create(std::move(options)));
  const std::vector<BenchCase> cases = cases_for(asked, rig->device.arch);
  if (cases.empty())
    return bad_flags("the chosen cases", fmt::format("none of them is for {}", rig->device.name),
                     "chord-bench --list shows them all");
  CHORD_TRY(const auto bench, bench::Bench::create(*rig, flags.measure, cases));
  const bool is_ablation = flags.measure.ablation;
  if (!flags.json)
    (void)print_text(rig->device.name + "\n" +
                     (is_ablation ? bench::ablation_head() : bench::table_head()));
  std::vector<Measurement> all;
  for (const BenchCase& one : cases) {
    watchdog.watch(one.label(), kLongestCase);
    Result<Measurement> measurement = bench->measure(one);
    if (!measurement.ok()) {
      // What was measured before it is worth keeping.
      CHORD_TRY(const bench::RunHeader header, header_of(flags, command, *rig, all));
      if (!all.empty()) CHORD_TRY(merge_into_file(flags, bench::json_of(header, all)));
      return measurement.error();
    }
    if (!flags.json)
      (void)print_text(is_ablation ? bench::ablation_line(*measurement)
                                   : bench::table_line(*measurement));
    all.push_back(std::move(*measurement));
  }
  watchdog.rest();
  CHORD_TRY(const bench::RunHeader header, header_of(flags, command, *rig, all));
  return finish(flags, bench::json_of(header, all), all);
}

Result<int> host_cost(const Flags& flags, Options options) {
  bench::Watchdog watchdog(kFailed);
  watchdog.watch("the cost of a launch", kLongestCase);
  CHORD_TRY(const std::unique_ptr<bench::Rig> rig, bench::Rig::create(std::move(options)));
  CHORD_TRY(const bench::HostCost cost, bench::measure_host_cost(*rig));
  watchdog.rest();
  if (flags.json) {
    Json plans = Json::array();
    for (const bench::PlanCost& plan : cost.plans)
      plans.push_back({{"plan", plan.label}, {"first_us", plan.first_us}, {"us", plan.plan_us}});
    return print_json(Json{{"gpu", rig->device.name},
                           {"driver", driver_text(*rig->driver)},
                           {"bare_launch_us", cost.bare_launch_us},
                           {"launch_us", cost.launch_us},
                           {"c_launch_us", cost.c_launch_us},
                           {"memo_prepare_us", cost.memo_prepare_us},
                           {"disk_prepare_us", cost.disk_prepare_us},
                           {"plans", std::move(plans)},
                           {"date", today()}});
  }
  std::string text = fmt::format(
      "host, us per call: bare driver launch {:.2f}, launch {:.2f}, by the C face {:.2f}, memo-hit "
      "prepare {:.2f}, prepare from disk {:.0f}\n",
      cost.bare_launch_us, cost.launch_us, cost.c_launch_us, cost.memo_prepare_us,
      cost.disk_prepare_us);
  for (const bench::PlanCost& plan : cost.plans)
    text += fmt::format("plan of {}: first {:.0f}, then {:.2f}\n", plan.label, plan.first_us,
                        plan.plan_us);
  return print_text(text);
}

Result<int> run(Flags& flags, const std::string& command) {
  CHORD_TRY(flags.measure.flush, bench::parse_flush(flags.flush));
  CHORD_TRY(check_merge(flags));
  CHORD_TRY(check_ablation(flags));
  CHORD_TRY(Options options, options_of(flags));
  CHORD_TRY(const std::vector<BenchCase> all, bench::embedded_cases());
  CHORD_TRY(const std::vector<BenchCase> cases, bench::choose_cases(all, flags.set, flags.cases));
  if (flags.list) return list_cases(cases, flags.json);
  if (flags.prewarm) return prewarm(flags, std::move(options), cases);
  if (flags.host_cost) return host_cost(flags, std::move(options));
  return measure(flags, command, std::move(options), cases);
}

std::string command_line(int argc, char** argv) {
  std::string text = "chord-bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    text += word.find(' ') == std::string::npos ? " " + word : " '" + word + "'";
  }
  return text;
}

}  // namespace
}  // namespace chord::tools

int main(int argc, char** argv) {
  using namespace chord::tools;
  CLI::App app{"Checks and times expert GEMMs on the GPU.", "chord-bench"};
  Flags flags;
  add_flags(app, flags);
  if (const auto code = parse_flags(app, argc, argv)) return *code;
  const auto done = run(flags, command_line(argc, argv));
  return done ? *done : report(done.error(), flags.json);
}
