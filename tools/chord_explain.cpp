// chord-explain: what is decided for a layer or one expert GEMM, and why. Pure planning and one
// look into the cache: it needs no GPU, no driver and no compiler, and compiles nothing. Only
// --sass asks for the code itself, and so compiles what the cache lacks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "chord/engine.h"
#include "chord/model.h"
#include "src/base/environment.h"
#include "src/explain.h"
#include "src/explain_sass.h"
#include "src/explain_text.h"
#include "src/sass/disassembler.h"
#include "tools/cli.h"
#include "tools/cli_remote.h"
#include "tools/cli_subject.h"

namespace chord::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  SubjectFlags subject;
  std::string policy = "measured", cache_dir;
  RemoteFlags remote;
  bool source = false, key = false, sass = false, json = false;
};

constexpr const char* kExamples =
    "  chord-explain --model kimi-k2.5 --ep 8 --role decode --rows 160\n"
    "  chord-explain --family indexed --profile h200_prefill_ep8 --n 4096 --k 7168 --experts 48"
    " --rows 1024\n"
    "  chord-explain --family grouped_masked --n 4096 --k 7168 --experts 48 --max-m 256"
    " --expected-m 16\n"
    "  chord-explain --model kimi-k2.5 --tp 8 --role prefill --table --json";

void add_flags(CLI::App& app, Flags& flags) {
  add_subject_flags(app, flags.subject);
  app.add_option("--policy", flags.policy, "measured (default) or published")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--cache-dir", flags.cache_dir, "cache folder to look into")
      ->type_name("FOLDER")
      ->check(flag_text());
  add_remote_flag(app, flags.remote);
  app.add_flag("--table", flags.subject.table, "the schedules of all rows instead of one answer");
  app.add_flag("--source", flags.source, "the CUDA source that the compiler would be given");
  app.add_flag("--key", flags.key, "the fields that make the cache key");
  app.add_flag("--sass", flags.sass,
               "instructions of the loop over K, counted in the code; compiles what the cache "
               "lacks, needs nvdisasm");
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

Status check_one_answer(const Flags& flags) {
  const std::string of_one_answer =
      first_set({{"--source", flags.source}, {"--key", flags.key}, {"--sass", flags.sass}});
  if (flags.subject.table && !of_one_answer.empty())
    return bad_flags("--table", of_one_answer,
                     "source, key and code belong to one answer; leave --table out");
  return {};
}

// The answer for one projection with what --source, --key and --sass add.
struct Answer {
  Explanation explanation;
  std::string source;
  std::string key_text;
  std::optional<SassExplanation> sass;
};

// Asked for before anything is explained, so that key, registers and the rest are those of the code
// that is shown. Nothing is compiled for a text that nobody can make.
Result<SassExplanation> sass_of(Engine& engine, const Decision& decision) {
  CHORD_TRY(const std::string nvdisasm, sass::find_nvdisasm(base::process_environment()));
  CHORD_TRY(CompiledKernel kernel, engine.compile(decision));
  return explain_sass(nvdisasm, decision, std::move(kernel));
}

Result<Answer> answer_of(const Engine& engine, const Flags& flags, Explanation explanation,
                         std::optional<SassExplanation> sass) {
  Answer answer{std::move(explanation), "", "", std::move(sass)};
  if (flags.source) {
    CHORD_TRY(answer.source, engine.source(answer.explanation.decision));
  }
  if (flags.key && answer.explanation.key) {
    CHORD_TRY(answer.key_text, engine.key_text(answer.explanation.decision));
  }
  return answer;
}

Json answer_json(const Flags& flags, const Answer& answer) {
  Json json = json_of(answer.explanation);
  if (flags.key) json["key_text"] = answer.explanation.key ? Json(answer.key_text) : Json(nullptr);
  if (flags.source) json["source"] = answer.source;
  if (answer.sass) json["sass"] = json_of(*answer.sass);
  return json;
}

std::string ended_line(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

bool wants_parts(const Flags& flags) { return flags.key || flags.source || flags.sass; }

// Text of --key, --source and --sass: the thing itself, ready for a pipe or a diff. A layer's two
// parts have a title, as a comment.
std::string answer_text(const Flags& flags, const Answer& answer, std::string_view title) {
  const Explanation& e = answer.explanation;
  std::string text = title.empty() ? "" : fmt::format("// {}\n", title);
  if (flags.key)
    text += e.key ? ended_line(answer.key_text) : fmt::format("key not known: {}\n", e.key_missing);
  if (flags.source) text += ended_line(answer.source);
  if (answer.sass) text += to_text(*answer.sass);
  return text;
}

Result<int> explain_layer(Engine& engine, const Flags& flags, const LayerDescriptor& layer) {
  if (flags.subject.table) {
    CHORD_TRY(const LayerTable table, layer_table(engine, layer));
    return flags.json ? print_json(json_of(table)) : print_text(to_text(table));
  }
  std::optional<SassExplanation> gate_up_sass, down_sass;
  if (flags.sass) {
    CHORD_TRY(const LayerPlan plan, engine.plan_layer(layer));
    CHORD_TRY(gate_up_sass, sass_of(engine, plan.gate_up));
    CHORD_TRY(down_sass, sass_of(engine, plan.down));
  }
  CHORD_TRY(const LayerExplanation pair, engine.explain(layer));
  CHORD_TRY(const Answer gate_up, answer_of(engine, flags, pair.gate_up, std::move(gate_up_sass)));
  CHORD_TRY(const Answer down, answer_of(engine, flags, pair.down, std::move(down_sass)));
  if (flags.json)
    return print_json(Json{{"gate_up", answer_json(flags, gate_up)},
                           {"down", answer_json(flags, down)},
                           {"block_m", pair.block_m}});
  if (!wants_parts(flags)) return print_text(to_text(pair));
  return print_text(answer_text(flags, gate_up, "gate_up") + answer_text(flags, down, "down"));
}

Result<int> explain_gemm(Engine& engine, const Flags& flags, const GemmDescriptor& gemm) {
  if (flags.subject.table) {
    CHORD_TRY(const ScheduleTable table, engine.schedule_table(gemm));
    return flags.json ? print_json(json_of(table)) : print_text(to_text(table));
  }
  std::optional<SassExplanation> sass;
  if (flags.sass) {
    CHORD_TRY(const Decision decision, engine.plan(gemm));
    CHORD_TRY(sass, sass_of(engine, decision));
  }
  CHORD_TRY(Explanation explanation, engine.explain(gemm));
  CHORD_TRY(const Answer answer, answer_of(engine, flags, std::move(explanation), std::move(sass)));
  if (flags.json) return print_json(answer_json(flags, answer));
  if (!wants_parts(flags)) return print_text(to_text(answer.explanation));
  return print_text(answer_text(flags, answer, ""));
}

Result<int> run(const Flags& flags) {
  CHORD_TRY(check_one_answer(flags));
  CHORD_TRY(const Subject subject, subject_of(flags.subject));
  Options options;
  options.manifest = "";  // planning needs no kernel
  CHORD_TRY(apply(flags.remote, options));
  CHORD_TRY(options.policy, parse_policy(flags.policy));
  if (!flags.cache_dir.empty()) options.cache_dir = flags.cache_dir;
  CHORD_TRY(Engine engine, Engine::create(std::move(options)));
  if (const auto* layer = std::get_if<LayerDescriptor>(&subject))
    return explain_layer(engine, flags, *layer);
  return explain_gemm(engine, flags, std::get<GemmDescriptor>(subject));
}

}  // namespace
}  // namespace chord::tools

int main(int argc, char** argv) {
  using namespace chord::tools;
  CLI::App app{"Says which schedule is chosen for given rows, and why.", "chord-explain"};
  Flags flags;
  add_flags(app, flags);
  if (const auto code = parse_flags(app, argc, argv)) return *code;
  const auto done = run(flags);
  return done ? *done : report(done.error(), flags.json);
}
