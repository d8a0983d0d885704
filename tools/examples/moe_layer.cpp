// moe-layer: one MoE layer from router logits on, as an engine runs it. Reads a Kimi K2 checkpoint
// (or makes one up), packs its experts on the GPU, plans, prepares, captures gate, alignment, both
// GEMMs, SwiGLU and weighted sum into one CUDA graph, replays it, compares with an FP64 reference,
// and times it.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/cubin/recipe.h"
#include "tools/bench/watchdog.h"
#include "tools/cli.h"
#include "tools/examples/kimi_checkpoint.h"
#include "tools/examples/layer_report.h"
#include "tools/examples/synthetic_checkpoint.h"

namespace chord::examples {
namespace {

using namespace chord::tools;
using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kLongestRun{600};

constexpr const char* kExamples =
    "  moe-layer --synthetic tiny\n"
    "  moe-layer --synthetic kimi-ep8 --tokens 160 --fused both\n"
    "  moe-layer --synthetic kimi-tp8 --tokens 64 --rank 3 --block-m 16 --json\n"
    "  moe-layer --synthetic tiny --write /tmp/tiny\n"
    "  moe-layer --checkpoint /models/kimi-k2.5 --layer 1 --ep 8 --rank 0 --plan-only";

struct Flags {
  std::string checkpoint, synthetic, write, role, cache_dir, fused = "both";
  std::int64_t layer = -1, tokens = 16;
  int ep = 0, tp = 0, rank = 0, block_m = 0;
  std::uint64_t seed = 1;
  SessionOptions session;
  bool shared_slot = false, plan_only = false, prewarm = false, json = false;
};

void add_source_flags(CLI::App& app, Flags& flags) {
  app.add_option("--checkpoint", flags.checkpoint,
                 "folder of a Kimi K2 checkpoint, with config.json, or its one safetensors file")
      ->type_name("PATH")
      ->check(flag_text());
  app.add_option("--synthetic", flags.synthetic,
                 "made-up weights instead: tiny, kimi-ep8 or kimi-tp8")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--write", flags.write,
                 "write the synthetic checkpoint into this folder and end; needs no GPU")
      ->type_name("FOLDER")
      ->check(flag_text());
  app.add_option("--layer", flags.layer, "default: the first that has experts")
      ->type_name("NUMBER")
      ->transform(whole_number(0, 100000));
  app.add_option("--ep", flags.ep, "experts are shared by this many GPUs")
      ->type_name("WAYS")
      ->transform(whole_number(1, 1 << 16));
  app.add_option("--tp", flags.tp, "every expert is cut into this many parts")
      ->type_name("WAYS")
      ->transform(whole_number(1, 1 << 16));
  app.add_option("--rank", flags.rank, "which of them this GPU is; default 0")
      ->type_name("NUMBER")
      ->transform(whole_number(0, 1 << 16));
  app.add_flag("--shared-expert-slot", flags.shared_slot,
               "the shared expert as one more expert that every token takes; it has to be INT4");
  app.add_option("--seed", flags.seed, "of synthetic weights and of activations; default 1")
      ->type_name("NUMBER")
      ->transform(whole_number(0, 1 << 30));
}

void add_run_flags(CLI::App& app, Flags& flags) {
  app.add_option("--tokens", flags.tokens, "tokens that the layer sees; default 16")
      ->type_name("COUNT")
      ->transform(whole_number(1, 1 << 20));
  app.add_option("--block-m", flags.block_m,
                 "alignment of the routing that is fixed already; default: the planned one")
      ->type_name("COUNT")
      ->transform(whole_number(8, 256));
  app.add_option("--role", flags.role, "decode (default up to 256 tokens), prefill or mix")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--fused", flags.fused,
                 "what the GEMMs end in: none, swiglu, weighted or both (default); timed beside "
                 "none")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_flag("--alone", flags.session.is_alone,
               "do not time none beside; gate/up is then loaded in one row order only");
  app.add_option("--iterations", flags.session.iterations, "timed runs of each kind; default 60")
      ->type_name("COUNT")
      ->transform(whole_number(1, 100000));
  app.add_option("--check-tokens", flags.session.check_tokens,
                 "tokens compared with the reference; default 64")
      ->type_name("COUNT")
      ->transform(whole_number(1, 1 << 20));
  app.add_flag("--pdl", flags.session.programmatic_dependent_launch,
               "programmatic dependent launch between the kernels");
  app.add_flag("--plan-only", flags.plan_only,
               "check the checkpoint and plan for sm_90a; needs no GPU");
  app.add_flag("--prewarm", flags.prewarm, "compile what the layer needs for sm_90a; needs no GPU");
  app.add_option("--cache-dir", flags.cache_dir, "cache folder to use")
      ->type_name("FOLDER")
      ->check(flag_text());
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
}

Status check_flags(const Flags& flags) {
  if (flags.checkpoint.empty() == flags.synthetic.empty())
    return bad_flags("the layer's weights",
                     flags.checkpoint.empty() ? "neither --checkpoint nor --synthetic"
                                              : "--checkpoint and --synthetic",
                     "give one of them");
  if (!flags.write.empty() && flags.synthetic.empty())
    return bad_flags("--write", "--checkpoint", "it writes synthetic checkpoints only");
  if (flags.ep != 0 && flags.tp != 0)
    return bad_flags("the layer's shard", "--ep and --tp", "give one of them");
  if (flags.block_m % 8 != 0)
    return bad_flags(fmt::format("--block-m {}", flags.block_m), "not a multiple of 8",
                     "8, 16, 24, ... 256");
  return {};
}

// A source with everything that has to outlive it.
struct Opened {
  std::string label;
  MoeConfig config;
  ShardChoice choice;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<LayerSource> source;
};

Result<SyntheticPreset> preset_of(const Flags& flags) {
  CHORD_TRY(SyntheticPreset preset, synthetic_preset(flags.synthetic));
  preset.options.seed = flags.seed;
  preset.options.shared_expert = flags.shared_slot;
  return preset;
}

ShardChoice choice_of(const Flags& flags, Shard shard) {
  if (flags.ep != 0) shard = {ShardAxis::expert, flags.ep};
  if (flags.tp != 0) shard = {ShardAxis::tensor, flags.tp};
  return {shard, flags.rank, flags.shared_slot};
}

Result<Opened> open_source(const Flags& flags) {
  Opened opened;
  Shard shard{ShardAxis::expert, 1};
  std::optional<SyntheticPreset> preset;
  if (!flags.synthetic.empty()) {
    CHORD_TRY(preset, preset_of(flags));
    shard = preset->shard;
    CHORD_TRY(opened.config, synthetic_config(preset->options));
  } else {
    CHORD_TRY(Checkpoint checkpoint, Checkpoint::open(flags.checkpoint));
    opened.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
    CHORD_TRY(opened.config, read_checkpoint_config(*opened.checkpoint));
  }
  opened.choice = choice_of(flags, shard);
  const std::int64_t layer =
      flags.layer >= 0 ? flags.layer : opened.config.model.first_k_dense_replace;
  if (preset) {
    CHORD_TRY(opened.source, SyntheticLayer::make(preset->options, layer, opened.choice));
  } else {
    CHORD_TRY(opened.source,
              KimiLayer::open(*opened.checkpoint, opened.config, layer, opened.choice));
  }
  opened.label =
      fmt::format("layer {} of {}, rank {} of {} {}{}", layer,
                  preset ? "synthetic " + flags.synthetic : flags.checkpoint, opened.choice.rank,
                  chord::name(opened.choice.shard.axis), opened.choice.shard.ways,
                  opened.choice.shared_slot ? ", with a slot for the shared expert" : "");
  return opened;
}

Result<int> write_checkpoint(const Flags& flags) {
  CHORD_TRY(const SyntheticPreset preset, preset_of(flags));
  std::error_code error;
  std::filesystem::create_directories(flags.write, error);
  if (error) return Error{ErrorCode::io_error, "create folder " + flags.write, error.message(), ""};
  CHORD_TRY(write_synthetic_checkpoint(flags.write, preset.options));
  if (flags.json) return print_json(Json{{"written", flags.write}});
  return print_text(fmt::format("synthetic {} written to {}\n", flags.synthetic, flags.write));
}

Result<SessionOptions> session_of(const Flags& flags, const Opened& opened) {
  SessionOptions options = flags.session;
  options.seed = flags.seed;
  CHORD_TRY(options.fused, parse_fused(flags.fused));
  options.rule = opened.config.routing;
  options.question.shape = opened.source->shape();
  options.question.choice = opened.choice;
  options.question.top_k = options.rule.top_k;
  options.question.tokens = flags.tokens;
  if (flags.block_m != 0) options.question.block_m = flags.block_m;
  if (!flags.role.empty()) {
    CHORD_TRY(options.question.role, parse_role(flags.role));
  }
  return options;
}

Result<int> plan_only(const Flags& flags, const Opened& opened, const SessionOptions& session,
                      Options options) {
  CHORD_TRY(const Engine engine, Engine::create(std::move(options)));
  CHORD_TRY(const LayerPlan plan, engine.plan_layer(describe(session.question, session.fused)));
  if (flags.json)
    return print_json(Json{{"layer", opened.label},
                           {"slots", session.question.shape.slots()},
                           {"rows", session.question.expected_rows()},
                           {"fused", name(session.fused)},
                           {"plan", json_of(plan)}});
  return print_text(fmt::format("{}\n{} experts, {} rows expected\n{}\n", opened.label,
                                session.question.shape.slots(), session.question.expected_rows(),
                                text_of(plan)));
}

// Every kernel of the session, so that the machine with the GPU needs no compiler.
Result<int> prewarm(const Flags& flags, const SessionOptions& session, Options options) {
  constexpr Architecture kArch = Architecture::sm_90a;
  CHORD_TRY(const Engine engine, Engine::create(std::move(options)));
  CHORD_TRY(const auto code, bench::DeviceCode::create(engine));
  std::vector<cubin::Recipe> recipes;
  const auto add = [&](Result<cubin::Recipe> recipe) -> Status {
    CHORD_TRY(cubin::Recipe made, std::move(recipe));
    recipes.push_back(std::move(made));
    return {};
  };
  for (const Fused fused : forms_of(session)) {
    CHORD_TRY(const LayerPlan plan, engine.plan_layer(describe(session.question, fused)));
    CHORD_TRY(add(cubin::gemm_recipe(plan.gate_up)));
    CHORD_TRY(add(cubin::gemm_recipe(plan.down)));
  }
  for (const layer::LayerKernel kernel : layer::kLayerKernels)
    CHORD_TRY(add(cubin::layer_recipe(kArch, kernel)));
  CHORD_TRY(add(cubin::pack_recipe(kArch, CodeSource::words, ScaleSource::row_major)));
  CHORD_TRY(const bench::PrewarmCount count, code->prewarm(kArch, std::move(recipes)));
  if (flags.json) return print_json(Json{{"kernels", count.kernels}, {"compiles", count.compiles}});
  return print_text(fmt::format("{} kernels, {} compiled now, in {}\n", count.kernels,
                                count.compiles, engine.cache_dir()));
}

Result<int> run(const Flags& flags) {
  CHORD_TRY(check_flags(flags));
  if (!flags.write.empty()) return write_checkpoint(flags);
  CHORD_TRY(const Opened opened, open_source(flags));
  CHORD_TRY(const SessionOptions session, session_of(flags, opened));
  Options options;
  if (!flags.cache_dir.empty()) options.cache_dir = flags.cache_dir;
  if (flags.plan_only) return plan_only(flags, opened, session, std::move(options));
  if (flags.prewarm) return prewarm(flags, session, std::move(options));
  bench::Watchdog watchdog(kFailed);
  watchdog.watch("the layer", kLongestRun);
  CHORD_TRY(const std::unique_ptr<bench::Rig> rig, bench::Rig::create(std::move(options)));
  CHORD_TRY(const SessionReport report, run_session(*rig, *opened.source, session));
  watchdog.rest();
  const int code = report.is_right() ? kOk : kFailed;
  if (flags.json) return print_json(json_of(report, session, opened.label), code);
  return print_text(text_of(report, session, opened.label), code);
}

}  // namespace
}  // namespace chord::examples

int main(int argc, char** argv) {
  using namespace chord::examples;
  CLI::App app{"Runs one MoE layer from router logits on, as an engine does.", "moe-layer"};
  Flags flags;
  add_source_flags(app, flags);
  add_run_flags(app, flags);
  if (const auto code = chord::tools::parse_flags(app, argc, argv)) return *code;
  const auto done = run(flags);
  return done ? *done : chord::tools::report(done.error(), flags.json);
}
