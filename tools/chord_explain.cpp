// chord-explain: what is decided for a layer or one expert GEMM, and why. Pure planning and one
// look into the cache: it needs no GPU, no driver and no compiler, and compiles nothing. Only
// --sass asks for the code itself, and so compiles what the cache lacks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "chord/engine.h"
#include "chord/model.h"
#include "src/base/environment.h"
#include "src/explain.h"
#include "src/explain_sass.h"
#include "src/explain_text.h"
#include "src/sass/disassembler.h"
#include "tools/cli.h"
#include "tools/cli_model.h"

namespace chord::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  std::string role;
  std::string family, profile;
  std::int64_t n = 0, k = 0, experts = 0;
  std::int64_t rows = 0, max_m = 0, expected_m = 0;
  int block_m = 0, num_sms = 0;
  std::string arch, policy = "measured", cache_dir;
  bool table = false, source = false, key = false, sass = false, json = false;
};

// What is asked: a layer of a model, or one GEMM by its shape.
using Subject = std::variant<LayerDescriptor, GemmDescriptor>;

constexpr const char* kExamples =
    "  chord-explain --model kimi-k2.5 --ep 8 --role decode --rows 160\n"
    "  chord-explain --family indexed --profile h200_prefill_ep8 --n 4096 --k 7168 --experts 48"
    " --rows 1024\n"
    "  chord-explain --family grouped_masked --n 4096 --k 7168 --experts 48 --max-m 256"
    " --expected-m 16\n"
    "  chord-explain --model kimi-k2.5 --tp 8 --role prefill --table --json";

void add_shape_flags(CLI::App& app, Flags& flags) {
  const std::string group = "Shape";
  const auto size = [&](const char* flag, std::int64_t& value, const char* text) {
    app.add_option(flag, value, text)
        ->type_name("COUNT")
        ->transform(whole_number(1, kMaxTableRows))
        ->group(group);
  };
  app.add_option("--family", flags.family,
                 "indexed, grouped_contiguous or grouped_masked (by model: indexed)")
      ->type_name("NAME")
      ->check(flag_text())
      ->group(group);
  app.add_option("--profile", flags.profile,
                 "indexed: h200_prefill_ep8, h200_tp8, h200_decode_ep8 or blackwell_decode_ep8")
      ->type_name("NAME")
      ->check(flag_text())
      ->group(group);
  size("--n", flags.n, "output columns of one expert");
  size("--k", flags.k, "depth");
  size("--experts", flags.experts, "experts held by this GPU");
  size("--rows", flags.rows, "routed rows (indexed) or rows (grouped_contiguous)");
  size("--max-m", flags.max_m, "grouped_masked: rows of one expert's slab");
  size("--expected-m", flags.expected_m, "grouped_masked: rows expected per expert");
  app.add_option("--block-m", flags.block_m, "an alignment of the routing that is already fixed")
      ->type_name("COUNT")
      ->transform(whole_number(8, 256))
      ->group(group);
}

void add_flags(CLI::App& app, Flags& flags) {
  add_model_flags(app, flags.model);
  app.add_option("--role", flags.role, "decode (default), prefill or mix")
      ->type_name("NAME")
      ->check(flag_text())
      ->group("Model");
  add_shape_flags(app, flags);
  app.add_option("--arch", flags.arch,
                 "sm_90a (default), sm_100a (default of Blackwell profiles) or sm_103a")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--num-sms", flags.num_sms, "SMs of the GPU; default 132, on Blackwell 148")
      ->type_name("COUNT")
      ->transform(whole_number(1, 4096));
  app.add_option("--policy", flags.policy, "measured (default) or published")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--cache-dir", flags.cache_dir, "cache folder to look into")
      ->type_name("FOLDER")
      ->check(flag_text());
  app.add_flag("--table", flags.table, "the schedules of all rows instead of one answer");
  app.add_flag("--source", flags.source, "the CUDA source that the compiler would be given");
  app.add_flag("--key", flags.key, "the fields that make the cache key");
  app.add_flag("--sass", flags.sass,
               "instructions of the loop over K, counted in the code; compiles what the cache "
               "lacks, needs nvdisasm");
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

Status check_sizes(const Flags& flags, Family family) {
  const std::string asked = fmt::format("--family {}", name(family));
  if (family == Family::grouped_masked) {
    if (flags.rows != 0) return bad_flags(asked, "--rows", "give --max-m and --expected-m");
    if (flags.max_m == 0)
      return bad_flags(asked, "no --max-m", "give the rows of one expert's slab: --max-m 256");
    if (flags.expected_m == 0 && !flags.table)
      return bad_flags(asked, "no --expected-m", "give --expected-m 16, or --table for all");
    return {};
  }
  const std::string extra =
      first_set({{"--max-m", flags.max_m != 0}, {"--expected-m", flags.expected_m != 0}});
  if (!extra.empty()) return bad_flags(asked, extra, "that belongs to grouped_masked; give --rows");
  if (flags.rows == 0 && !flags.table)
    return bad_flags(asked, "no --rows", "give --rows 160, or --table for all");
  return {};
}

Result<Architecture> architecture_of(const Flags& flags) {
  if (!flags.arch.empty()) return parse_architecture(flags.arch);
  const bool blackwell = flags.profile.rfind("blackwell", 0) == 0;
  return blackwell ? Architecture::sm_100a : Architecture::sm_90a;
}

// A table answers for all rows, so it takes any of them.
template <class Descriptor>
void set_sizes(const Flags& flags, Descriptor& descriptor) {
  descriptor.rows = flags.table && flags.rows == 0 ? 1 : flags.rows;
  descriptor.max_m = flags.max_m;
  descriptor.expected_m = flags.table && flags.expected_m == 0 ? 1 : flags.expected_m;
  if (descriptor.family == Family::grouped_masked)
    descriptor.rows = 0;
  else
    descriptor.expected_m = 0;
  descriptor.num_sms = flags.num_sms;
  if (flags.block_m != 0) descriptor.block_m = flags.block_m;
}

Result<Subject> layer_subject(const Flags& flags) {
  const std::string extra = first_set({{"--profile", !flags.profile.empty()},
                                       {"--n", flags.n != 0},
                                       {"--k", flags.k != 0},
                                       {"--experts", flags.experts != 0}});
  if (!extra.empty())
    return bad_flags("a layer of a model", extra, "a model has its own shapes; leave it out");
  CHORD_TRY(const ModelConfig model, load_model(flags.model));
  CHORD_TRY(const Shard shard, shard_of(flags.model));
  CHORD_TRY(LayerDescriptor layer, shard_layer(model, shard));
  CHORD_TRY(layer.family, parse_family(flags.family.empty() ? "indexed" : flags.family));
  CHORD_TRY(layer.role, parse_role(flags.role.empty() ? "decode" : flags.role));
  CHORD_TRY(layer.arch, architecture_of(flags));
  CHORD_TRY(check_sizes(flags, layer.family));
  set_sizes(flags, layer);
  return Subject(layer);
}

Result<Subject> shape_subject(const Flags& flags) {
  if (!flags.role.empty())
    return bad_flags("one GEMM by its shape", "--role", "a role belongs to --model or --config");
  if (flags.family.empty())
    return bad_flags("a decision", "neither a model nor a --family", "see the examples of --help");
  GemmDescriptor gemm;
  CHORD_TRY(gemm.family, parse_family(flags.family));
  const std::string missing =
      first_set({{"--n", flags.n == 0}, {"--k", flags.k == 0}, {"--experts", flags.experts == 0}});
  if (!missing.empty())
    return bad_flags(fmt::format("--family {}", name(gemm.family)), "no " + missing,
                     "by shape, --n, --k and --experts are needed");
  const bool indexed = gemm.family == Family::indexed;
  if (!indexed && !flags.profile.empty())
    return bad_flags(fmt::format("--family {}", name(gemm.family)), "--profile",
                     "profiles belong to the indexed family; leave it out");
  if (indexed && flags.profile.empty())
    return bad_flags("--family indexed", "no --profile",
                     "the role and the shard are never guessed: --profile h200_decode_ep8");
  CHORD_TRY(check_sizes(flags, gemm.family));
  CHORD_TRY(gemm.arch, architecture_of(flags));
  gemm.profile = flags.profile;
  gemm.n = flags.n;
  gemm.k = flags.k;
  gemm.experts = flags.experts;
  set_sizes(flags, gemm);
  return Subject(gemm);
}

Result<Subject> subject_of(const Flags& flags) {
  const std::string of_one_answer =
      first_set({{"--source", flags.source}, {"--key", flags.key}, {"--sass", flags.sass}});
  if (flags.table && !of_one_answer.empty())
    return bad_flags("--table", of_one_answer,
                     "source, key and code belong to one answer; leave --table out");
  return flags.model.any() ? layer_subject(flags) : shape_subject(flags);
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
  if (flags.table) {
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
  if (flags.table) {
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
  CHORD_TRY(const Subject subject, subject_of(flags));
  Options options;
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
