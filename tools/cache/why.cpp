// chord-cache why: where a kernel's cubin is, or why no tier gives it; for a key, or for the
// kernels of a layer or a GEMM.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "chord/engine.h"
#include "tools/cache/command.h"
#include "tools/cache/text.h"
#include "tools/cli.h"
#include "tools/cli_remote.h"
#include "tools/cli_subject.h"

namespace chord::tools {
namespace {

struct Flags {
  std::string key;
  SubjectFlags subject;
  RemoteFlags remote;
};

Json json_of(const Inquiry& inquiry) {
  Json tiers = Json::array();
  for (const TierStatus& tier : inquiry.tiers)
    tiers.push_back(Json{{"tier", tier.tier},
                         {"there", tier.reason == MissReason::none},
                         {"reason", name(tier.reason)},
                         {"text", tier.text}});
  Json json{{"label", inquiry.label},
            {"key", inquiry.key ? Json(*inquiry.key) : Json(nullptr)},
            {"there", inquiry.is_there()},
            {"tiers", std::move(tiers)},
            {"nearest", inquiry.nearest ? Json(*inquiry.nearest) : Json(nullptr)},
            {"differing_fields", inquiry.differing_fields}};
  if (!inquiry.key) json["key_missing"] = inquiry.key_missing;
  return json;
}

std::string text_of(const Inquiry& inquiry) {
  std::string text = inquiry.label.empty() ? "" : inquiry.label + "\n";
  if (!inquiry.key) return text + fmt::format("key not known: {}\n", inquiry.key_missing);
  text += fmt::format("key {}\n", *inquiry.key);
  for (const TierStatus& tier : inquiry.tiers)
    text += tier.reason == MissReason::none
                ? fmt::format("  {}: it is there\n", tier.tier)
                : fmt::format("  {}: {} ({})\n", tier.tier, name(tier.reason), tier.text);
  if (inquiry.nearest)
    text += fmt::format("nearest {}, which differs in: {}\n", *inquiry.nearest,
                        fmt::join(inquiry.differing_fields, ", "));
  return text;
}

Result<std::vector<Inquiry>> inquire(const Engine& engine, const Flags& flags) {
  std::vector<Inquiry> answers;
  if (!flags.key.empty()) {
    CHORD_TRY(answers.emplace_back(), engine.why(flags.key));
    return answers;
  }
  CHORD_TRY(const Subject subject, subject_of(flags.subject));
  if (const auto* layer = std::get_if<LayerDescriptor>(&subject)) {
    CHORD_TRY(const LayerPlan plan, engine.plan_layer(*layer));
    CHORD_TRY(answers.emplace_back(), engine.why(plan.gate_up));
    CHORD_TRY(answers.emplace_back(), engine.why(plan.down));
  } else {
    CHORD_TRY(const Decision decision, engine.plan(std::get<GemmDescriptor>(subject)));
    CHORD_TRY(answers.emplace_back(), engine.why(decision));
  }
  return answers;
}

Result<int> run(const Flags& flags, const Common& common) {
  Options options;
  if (!common.cache_dir.empty()) options.cache_dir = common.cache_dir;
  CHORD_TRY(apply(flags.remote, options));
  options.manifest = "";  // what it lacks is what is asked about
  CHORD_TRY(const Engine engine, Engine::create(std::move(options)));
  CHORD_TRY(const std::vector<Inquiry> answers, inquire(engine, flags));
  bool all_there = true;
  Json kernels = Json::array();
  std::string text;
  for (const Inquiry& answer : answers) {
    all_there = all_there && answer.is_there();
    kernels.push_back(json_of(answer));
    text += text_of(answer);
  }
  const int code = all_there ? kOk : kNotCovered;
  if (common.json) return print_json(Json{{"kernels", std::move(kernels)}}, code);
  return print_text(text, code);
}

Action prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("KEY", flags->key, "name of a key; else flags say which kernel is meant")
      ->check(flag_text());
  add_subject_flags(app, flags->subject);
  add_remote_flag(app, flags->remote);
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kWhyCommand{
    "why", "where a kernel's cubin is, or why it is not in the cache",
    "  chord-cache why --model kimi-k2.5 --ep 8 --role decode --rows 160\n"
    "  chord-cache why 3b0c5c1f2a7d4e8890aa12bb34cc56dd --remote redis://cache.internal",
    prepare};

}  // namespace chord::tools
