// See cli_subject.h.
#include "tools/cli_subject.h"

#include <fmt/format.h>

#include "chord/model.h"
#include "chord/schedule.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

void add_shape_flags(CLI::App& app, SubjectFlags& flags) {
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
  app.add_option("--epilogue", flags.epilogue, "none (default), swiglu or weighted")
      ->type_name("NAME")
      ->check(flag_text())
      ->group(group);
  app.add_option("--block-m", flags.block_m, "an alignment of the routing that is already fixed")
      ->type_name("COUNT")
      ->transform(whole_number(8, 256))
      ->group(group);
}

Status check_sizes(const SubjectFlags& flags, Family family) {
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

Result<Architecture> architecture_of(const SubjectFlags& flags) {
  if (!flags.arch.empty()) return parse_architecture(flags.arch);
  const bool blackwell = flags.profile.rfind("blackwell", 0) == 0;
  return blackwell ? Architecture::sm_100a : Architecture::sm_90a;
}

// A table answers for all rows, so it takes any of them.
template <class Descriptor>
void set_sizes(const SubjectFlags& flags, Descriptor& descriptor) {
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

Result<Subject> layer_subject(const SubjectFlags& flags) {
  const std::string extra = first_set({{"--profile", !flags.profile.empty()},
                                       {"--n", flags.n != 0},
                                       {"--k", flags.k != 0},
                                       {"--experts", flags.experts != 0},
                                       {"--epilogue", !flags.epilogue.empty()}});
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
  flags.model.set_epilogues(layer);
  return Subject(layer);
}

Result<Subject> shape_subject(const SubjectFlags& flags) {
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
  if (!flags.epilogue.empty()) {
    CHORD_TRY(gemm.epilogue, parse_epilogue(flags.epilogue));
  }
  return Subject(gemm);
}

}  // namespace

void add_subject_flags(CLI::App& app, SubjectFlags& flags) {
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
}

Result<Subject> subject_of(const SubjectFlags& flags) {
  return flags.model.any() ? layer_subject(flags) : shape_subject(flags);
}

}  // namespace chord::tools
