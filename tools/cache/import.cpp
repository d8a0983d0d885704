// chord-cache import: takes a signed file of entries into the cache, after all of it was checked,
// and says how much of a deployment it covers and what differs where it does not.
#include "cache/bundle/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "cache/key.h"
#include "src/base/posix_file_system.h"
#include "src/prewarm.h"
#include "tools/cache/command.h"
#include "tools/cache/service.h"
#include "tools/cache/text.h"
#include "tools/cli.h"
#include "tools/cli_deployment.h"

namespace chord::tools {
namespace {

struct Flags {
  std::string bundle, trusted_keys;
  DeploymentFlags deployment;
  bool check = false;
};

// What the bundle's entries say of themselves.
struct Contents {
  std::set<std::string> compilers;
  std::vector<CacheKey> keys;

  void take(const cache::Entry& entry) {
    compilers.insert(entry.compiler);
    keys.push_back(entry.key);
  }
};

// How the bundle meets a deployment. A kernel that is not covered is compared with the entries of
// the bundle; those that differ in the same fields are counted together.
struct Fit {
  std::size_t keys = 0;
  std::size_t covered = 0;
  std::map<std::string, std::size_t> differing;  // fields -> kernels
};

// Keys in the bundle carry its compilers, whatever this machine would compile with: a kernel is
// covered when the bundle has it under one of these.
bool is_covered(const cubin::Recipe& recipe, const Contents& contents) {
  return std::any_of(
      contents.compilers.begin(), contents.compilers.end(), [&](const std::string& compiler) {
        const CacheKey key = cubin::key_of(recipe, compiler);
        return std::find(contents.keys.begin(), contents.keys.end(), key) != contents.keys.end();
      });
}

// The fields in which the most similar entry differs.
std::string differing_fields(const cubin::Recipe& recipe, const Contents& contents) {
  std::vector<std::string> fewest;
  const CacheKey key = cubin::key_of(recipe, *contents.compilers.begin());
  for (const CacheKey& other : contents.keys) {
    std::vector<std::string> labels = cache::differing_fields(key.text, other.text);
    if (fewest.empty() || labels.size() < fewest.size()) fewest = std::move(labels);
  }
  return fmt::format("{}", fmt::join(fewest, ", "));
}

Result<Fit> fit_of(const Contents& contents, const Deployment& deployment, const Service& service) {
  CHORD_TRY(const std::vector<cubin::Recipe> recipes,
            deployment_recipes(deployment, service.options));
  Fit fit;
  fit.keys = recipes.size();
  for (const cubin::Recipe& recipe : recipes) {
    if (is_covered(recipe, contents))
      ++fit.covered;
    else if (!contents.keys.empty())
      ++fit.differing[differing_fields(recipe, contents)];
  }
  return fit;
}

// The compiler that this machine would use is worth a word: the bundle's kernels are loaded all the
// same, and whatever it lacks is compiled by another one.
std::string compiler_note(const cache::ImportReport& report, const Service& service) {
  const Result<std::string> own = service.compiler->identity();
  if (!own || *own == report.compiler) return {};
  return fmt::format("compiler: the bundle was made by {}, this machine has {}", report.compiler,
                     *own);
}

Json json_of(const cache::ImportReport& report, const std::optional<Fit>& fit,
             const std::string& note) {
  Json json{{"label", report.label},
            {"compiler", report.compiler},
            {"signer", report.signer},
            {"signer_comment", report.signer_comment},
            {"entries", report.entries},
            {"bytes", report.bytes},
            {"imported", report.imported},
            {"skipped", report.skipped},
            {"compiler_note", note.empty() ? Json(nullptr) : Json(note)}};
  if (!fit) return json;
  Json differing = Json::object();
  for (const auto& [fields, count] : fit->differing) differing[fields] = count;
  json["deployment"] = Json{
      {"keys", fit->keys}, {"covered", fit->covered}, {"differing_fields", std::move(differing)}};
  return json;
}

std::string text_of(const cache::ImportReport& report, const std::optional<Fit>& fit,
                    const std::string& note, bool check) {
  std::string text = fmt::format("deploys  {}\nmade by  {}\nsigned   {} {}\n", report.label,
                                 report.compiler, report.signer, report.signer_comment);
  text += check ? fmt::format("entries  {} ({} bytes), all checked, none imported\n",
                              report.entries, report.bytes)
                : fmt::format("entries  {} ({} bytes): {} imported, {} were there\n",
                              report.entries, report.bytes, report.imported, report.skipped);
  if (!note.empty()) text += fmt::format("note     {}\n", note);
  if (!fit) return text;
  text += fmt::format("covers   {} of the deployment's {} kernels\n", fit->covered, fit->keys);
  for (const auto& [fields, count] : fit->differing)
    text += fmt::format("missing  {} kernels; the nearest entry differs in: {}\n", count, fields);
  return text;
}

Result<int> run(const Flags& flags, const Common& common) {
  base::PosixFileSystem files;
  Options options;
  if (!flags.trusted_keys.empty()) options.trusted_keys = flags.trusted_keys;
  options.remote = "";
  std::optional<Deployment> deployment;
  if (flags.deployment.any()) {
    CHORD_TRY(deployment, deployment_of(flags.deployment));
  }
  CHORD_TRY(const Service service, open_service(common, {}, std::move(options), {}));
  if (!service.options.trusted_keys && !service.options.signing_key)
    return bad_flags(fmt::format("import {}", flags.bundle), "no key is trusted",
                     "name a file of public keys with CHORD_TRUSTED_KEYS or --trusted-keys");
  cache::ImportOptions wanted;
  if (deployment)
    for (const Architecture arch : deployment->archs) wanted.architectures.push_back(name(arch));
  CHORD_TRY(const cache::Signatures signatures, signatures_of(service.options, files));
  Contents contents;
  wanted.seen = [&](const cache::Entry& entry) { contents.take(entry); };
  const auto import = [&]() -> Result<cache::ImportReport> {
    if (flags.check) return cache::check_bundle(flags.bundle, signatures, wanted, files);
    // The folder itself is made by the first entry, after all of the bundle has been checked.
    if (!service.cache().writable_dir()) return service.cache().prepare_writable().error();
    return cache::import_bundle(flags.bundle, signatures, wanted, sink_of(service.cache()), files);
  };
  CHORD_TRY(const cache::ImportReport report, import());
  if (!flags.check)
    for (const std::string& compiler : contents.compilers)
      service.cache().record_compiler(compiler);
  std::optional<Fit> fit;
  if (deployment) {
    CHORD_TRY(fit, fit_of(contents, *deployment, service));
  }
  const std::string note = deployment ? compiler_note(report, service) : std::string();
  const int code = fit && fit->covered < fit->keys ? kNotCovered : kOk;
  if (common.json) return print_json(json_of(report, fit, note), code);
  return print_text(text_of(report, fit, note, flags.check), code);
}

Action prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("BUNDLE", flags->bundle, "file that chord-cache export wrote")
      ->check(flag_text())
      ->required();
  app.add_option("--trusted-keys", flags->trusted_keys,
                 "file of public keys; default: CHORD_TRUSTED_KEYS")
      ->type_name("FILE")
      ->check(flag_text());
  add_deployment_flags(app, flags->deployment);
  app.add_flag("--check", flags->check, "check all of it, import nothing");
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kImportCommand{
    "import", "take a signed file of entries into the cache",
    "  chord-cache import kimi.chordpack --trusted-keys fleet.keys\n"
    "  chord-cache import kimi.chordpack --check --model kimi-k2.5 --ep 8 --role decode",
    prepare};

}  // namespace chord::tools
