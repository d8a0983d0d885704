// chord-cache verify: reads every entry as a look-up would.
#include <fmt/format.h>

#include <utility>

#include "cache/disk_tier.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using cache::Entry;
using cache::EntrySummary;
using cache::Signatures;

struct Flags {
  bool signatures = false, set_aside = false;
  std::string trusted_keys;
};

struct Finding {
  EntrySummary entry;
  std::string done;  // with it: "kept", "set aside", "removed"
};

struct Report {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::vector<Finding> findings;
};

Result<Signatures> signatures_of(const Flags& flags, const Options& options) {
  const std::string path =
      flags.trusted_keys.empty() ? options.trusted_keys.value_or("") : flags.trusted_keys;
  if (path.empty())
    return bad_flags("verify signatures", "no file of trusted keys is named",
                     "name one with --trusted-keys or CHORD_TRUSTED_KEYS");
  CHORD_TRY(cache::TrustedKeys trusted, cache::TrustedKeys::read(path, files()));
  return Signatures(SignaturePolicy::required, std::move(trusted), std::nullopt);
}

// Bytes that are not an entry of their name. A folder's owner or mode is for a person to repair,
// and an entry that nobody signed is whole.
bool is_for_the_bad_folder(MissReason problem) {
  return problem == MissReason::damaged || problem == MissReason::older_schema ||
         problem == MissReason::other_key;
}

std::string set_aside(const EntrySummary& entry, cache::DiskTier& tier) {
  if (!is_for_the_bad_folder(entry.problem)) return "kept";
  if (entry.path != tier.layout().entry(entry.key))  // in the subfolder of other keys
    return files().remove(entry.path) ? "kept" : "removed";
  FileStat stat;
  tier.set_aside(CacheKey{{}, entry.key}, entry.problem_text);
  if (!files().stat(entry.path, stat) && stat.exists) return "kept";
  const bool moved = !files().stat(tier.layout().bad(entry.key), stat) && stat.exists;
  return moved ? "set aside" : "removed";
}

Result<Report> verify(const Folder& folder, const Signatures* signatures) {
  Report report;
  CHORD_TRY(folder.inspector.for_each([&](const EntrySummary& summary, const Entry* entry) {
    ++report.entries;
    report.bytes += summary.bytes;
    EntrySummary found = summary;
    if (entry != nullptr && signatures != nullptr) {
      const cache::Verdict verdict = signatures->check(*entry);
      found.problem = verdict.reason;
      found.problem_text = verdict.text;
    }
    if (!found.is_good()) report.findings.push_back({std::move(found), "kept"});
    return true;
  }));
  return report;
}

Json json_of(const Report& report, const Folder& folder) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings)
    findings.push_back(Json{{"key", finding.entry.key},
                            {"path", finding.entry.path},
                            {"reason", name(finding.entry.problem)},
                            {"found", finding.entry.problem_text},
                            {"done", finding.done}});
  return Json{{"cache_dir", folder.layout().root},
              {"entries", report.entries},
              {"bytes", report.bytes},
              {"good", report.entries - report.findings.size()},
              {"bad", std::move(findings)}};
}

std::string text_of(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings)
    text += one_line(fmt::format("{} {}: {} ({})", finding.entry.key, name(finding.entry.problem),
                                 finding.entry.problem_text, finding.done)) +
            "\n";
  return text + fmt::format("{} entries, {}: {} good, {} bad\n", report.entries,
                            size_text(report.bytes), report.entries - report.findings.size(),
                            report.findings.size());
}

Result<int> run(const Flags& flags, const Common& common) {
  if (!flags.trusted_keys.empty() && !flags.signatures)
    return bad_flags("verify the cache", "--trusted-keys without --signatures", "give both");
  CHORD_TRY(const Folder folder,
            open_folder(common, flags.set_aside ? Purpose::change : Purpose::read));
  Signatures signatures;
  if (flags.signatures) {
    CHORD_TRY(signatures, signatures_of(flags, folder.options));
  }
  CHORD_TRY(Report report, verify(folder, flags.signatures ? &signatures : nullptr));
  if (flags.set_aside) {
    cache::DiskTier tier(folder.layout().root, cache::Access::read_write, files(), clock());
    for (Finding& finding : report.findings) finding.done = set_aside(finding.entry, tier);
  }
  const int code = report.findings.empty() ? kOk : kFailed;
  return common.json ? print_json(json_of(report, folder), code)
                     : print_text(text_of(report), code);
}

Action prepare(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  app.add_flag("--signatures", flags->signatures, "a trusted key must have signed every entry");
  app.add_option("--trusted-keys", flags->trusted_keys,
                 "file of the public keys; default: CHORD_TRUSTED_KEYS")
      ->type_name("FILE")
      ->check(flag_text());
  app.add_flag("--set-aside", flags->set_aside,
               "move what is damaged to bad/ (at most 16 files are kept there)");
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kVerifyCommand{"verify", "read and check every entry; exit 1 when one is bad",
                             "  chord-cache verify\n"
                             "  chord-cache verify --set-aside\n"
                             "  chord-cache verify --signatures --trusted-keys /etc/chord/keys",
                             prepare};

}  // namespace chord::tools
