// chord-cache export: the entries of a manifest as one signed file.
#include "cache/bundle/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <vector>

#include "cache/disk_tier.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "tools/cache/command.h"
#include "tools/cache/service.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

struct Flags {
  std::string manifest, out, signing_key;
  bool allow_partial = false;
};

// A file, or the label of a pinned one.
Result<cache::Manifest> find_manifest(const Service& service, const std::string& asked,
                                      FileSystem& files) {
  FileStat stat;
  if (!files.stat(asked, stat) && stat.exists) return service.cache().read_manifest(asked);
  std::vector<std::string> labels;
  const cache::Layout layout{*service.options.cache_dir};
  for (cache::Manifest& pinned : cache::pinned_manifests(layout, files, [](auto, auto) {})) {
    if (pinned.label == asked) return std::move(pinned);
    labels.push_back(pinned.label);
  }
  return Error{ErrorCode::not_found, fmt::format("manifest {}", asked),
               "there is no such file, and no pinned manifest has this label",
               labels.empty() ? "chord-prewarm writes one"
                              : fmt::format("pinned are: {}", fmt::join(labels, "; "))};
}

Result<int> run(const Flags& flags, const Common& common) {
  base::PosixFileSystem files;
  base::SystemClock clock;
  Options options;
  if (!flags.signing_key.empty()) options.signing_key = flags.signing_key;
  options.remote = "";
  CHORD_TRY(const Service service, open_service(common, {}, std::move(options), {}));
  if (!service.options.signing_key)
    return bad_flags("a bundle", "no signing key",
                     "name one with CHORD_SIGNING_KEY or --signing-key; chord-cache keygen makes "
                     "one");
  CHORD_TRY(const cache::SigningKey key,
            cache::SigningKey::read(*service.options.signing_key, files));
  if (!service.options.cache_dir)
    return bad_flags("a bundle", "no cache folder", "name one with --cache-dir");
  CHORD_TRY(const cache::Manifest manifest, find_manifest(service, flags.manifest, files));
  std::vector<std::unique_ptr<cache::DiskTier>> tiers;
  std::vector<cache::DiskTier*> folders;
  std::vector<std::string> roots{*service.options.cache_dir};
  for (const std::string& folder : *service.options.readonly_cache_dirs) roots.push_back(folder);
  for (const std::string& root : roots) {
    tiers.push_back(
        std::make_unique<cache::DiskTier>(root, cache::Access::read_only, files, clock));
    folders.push_back(tiers.back().get());
  }
  cache::ExportOptions how;
  how.allow_partial = flags.allow_partial;
  how.sign_unsigned = *service.options.signatures == SignaturePolicy::accept_local;
  CHORD_TRY(const cache::ExportReport report,
            cache::export_bundle(manifest, cache::entries_of(folders), key, flags.out, how, files));
  if (common.json) {
    Json missing = Json::array();
    for (const cache::MissingEntry& one : report.missing)
      missing.push_back(
          Json{{"key", one.key.name}, {"label", one.key.label}, {"reason", one.reason}});
    return print_json(Json{{"bundle", flags.out},
                           {"label", manifest.label},
                           {"entries", report.entries},
                           {"entry_bytes", report.entry_bytes},
                           {"file_bytes", report.file_bytes},
                           {"signed_here", report.signed_here},
                           {"signers", report.signers},
                           {"missing", std::move(missing)}});
  }
  std::string text =
      fmt::format("bundle   {} ({} bytes)\ndeploys  {}\nentries  {} ({} bytes)\n", flags.out,
                  report.file_bytes, manifest.label, report.entries, report.entry_bytes);
  text += fmt::format("signers  {}\n", fmt::join(report.signers, ", "));
  for (const cache::MissingEntry& one : report.missing)
    text += fmt::format("left out {} {}: {}\n", one.key.name, one.key.label, one.reason);
  return print_text(text);
}

Action prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--manifest", flags->manifest, "file of chord-prewarm, or the label of a pin")
      ->type_name("MANIFEST")
      ->check(flag_text())
      ->required();
  app.add_option("-o,--out", flags->out, "file to write")
      ->type_name("FILE")
      ->check(flag_text())
      ->required();
  app.add_option("--signing-key", flags->signing_key, "secret key; default: CHORD_SIGNING_KEY")
      ->type_name("FILE")
      ->check(flag_text());
  app.add_flag("--allow-partial", flags->allow_partial,
               "leave out what is not in the cache; else that is an error");
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kExportCommand{
    "export", "write the entries of a manifest into one signed file",
    "  chord-cache export --manifest kimi.json -o kimi.chordpack --signing-key build.key", prepare};

}  // namespace chord::tools
