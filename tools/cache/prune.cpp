// chord-cache prune: brings the folder within bounds, or tells what would go.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cache/key.h"
#include "cache/pruner.h"
#include "src/base/numbers.h"
#include "tools/cache/folder.h"
#include "tools/cache/removals.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

constexpr std::int64_t kDayNs = std::int64_t{86400} * 1'000'000'000;

struct Flags {
  std::string max_bytes;
  std::optional<std::uint64_t> max_files;
  std::optional<std::int64_t> max_age_days;
  bool dry_run = false;
};

CLI::Validator byte_size() {
  return CLI::Validator(
      [](const std::string& value) -> std::string {
        if (base::parse_byte_size(value)) return "";
        return fmt::format("'{}' is no number of bytes", value);
      },
      "", "byte_size");
}

cache::Limits limits_of(const Flags& flags, const Options& options) {
  cache::Limits limits;
  limits.max_bytes = base::parse_byte_size(flags.max_bytes).value_or(*options.max_cache_bytes);
  limits.max_files = flags.max_files.value_or(*options.max_cache_files);
  limits.max_age_ns = flags.max_age_days.value_or(*options.max_cache_age_days) * kDayNs;
  return limits;
}

struct Pruned {
  cache::PruneReport report;
  cache::Limits limits;
  std::vector<Removal> removals;
  std::vector<std::string> notes;
  bool dry_run = false;
};

std::uint64_t bytes_of(const std::vector<Removal>& removals) {
  std::uint64_t bytes = 0;
  for (const Removal& removal : removals) bytes += removal.bytes;
  return bytes;
}

// An entry is told by its key, anything else by its path within the folder.
std::string told(const Removal& removal, const Folder& folder) {
  const std::string name = removal.path.substr(removal.path.rfind('/') + 1);
  if (cache::is_content_name(name) && removal.path == folder.layout().entry(name)) return name;
  return removal.path.substr(folder.layout().root.size() + 1);
}

Json json_of(const Pruned& pruned, const Folder& folder) {
  Json removed = Json::array();
  for (const Removal& removal : pruned.removals)
    removed.push_back(Json{{"what", told(removal, folder)}, {"bytes", removal.bytes}});
  return Json{
      {"cache_dir", folder.layout().root},
      {"dry_run", pruned.dry_run},
      {"limits",
       {{"max_bytes", pruned.limits.max_bytes},
        {"max_files", pruned.limits.max_files},
        {"max_age_days", pruned.limits.max_age_ns / kDayNs}}},
      {"evicted", pruned.report.evicted},
      {"expired", pruned.report.expired},
      {"swept", pruned.report.swept},
      {"removed_bytes", bytes_of(pruned.removals)},
      {"removed", std::move(removed)},
      {"left", {{"files", pruned.report.usage.files}, {"bytes", pruned.report.usage.bytes}}},
      {"notes", pruned.notes}};
}

std::string text_of(const Pruned& pruned, const Folder& folder) {
  std::string text;
  for (const Removal& removal : pruned.removals)
    text += one_line(fmt::format("{} {} ({})", pruned.dry_run ? "would remove" : "removed",
                                 told(removal, folder), size_text(removal.bytes))) +
            "\n";
  for (const std::string& note : pruned.notes) text += "note: " + one_line(note) + "\n";
  text += fmt::format("{} entries {}evicted, {} files {}swept, {}; {} files of {} {}stay\n",
                      pruned.report.evicted, pruned.dry_run ? "would be " : "", pruned.report.swept,
                      pruned.dry_run ? "would be " : "", size_text(bytes_of(pruned.removals)),
                      pruned.report.usage.files, size_text(pruned.report.usage.bytes),
                      pruned.dry_run ? "would " : "");
  return text;
}

Result<int> run(const Flags& flags, const Common& common) {
  CHORD_TRY(const Folder folder,
            open_folder(common, flags.dry_run ? Purpose::read : Purpose::change));
  Pruned pruned;
  pruned.dry_run = flags.dry_run;
  pruned.limits = limits_of(flags, folder.options);
  RemovalRecorder recorder(files(), flags.dry_run);
  cache::Pruner pruner(folder.layout(), pruned.limits, recorder, clock(), noting(pruned.notes));
  pruned.report = pruner.prune(0);
  pruned.removals = recorder.removals();
  if (!pruned.report.ran)
    return Error{ErrorCode::unavailable, fmt::format("prune cache folder {}", folder.layout().root),
                 "another process prunes it now, or it can not be read", "try again in a moment"};
  return common.json ? print_json(json_of(pruned, folder)) : print_text(text_of(pruned, folder));
}

Action prepare(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("--max-bytes", flags->max_bytes, "512M, 2G, or bytes; default: the limit in force")
      ->type_name("SIZE")
      ->check(byte_size());
  app.add_option("--max-files", flags->max_files, "default: the limit in force")
      ->type_name("COUNT")
      ->transform(whole_number(0, std::int64_t{1} << 62));
  app.add_option("--max-age-days", flags->max_age_days,
                 "entries that nobody used for longer go; 0: none goes for its age")
      ->type_name("DAYS")
      ->transform(whole_number(0, 36500));
  app.add_flag("--dry-run", flags->dry_run, "tell what would go, change nothing");
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kPruneCommand{"prune", "remove what is least recently used; pinned entries stay",
                            "  chord-cache prune --max-bytes 2G --dry-run\n"
                            "  chord-cache prune --max-bytes 512M --max-files 5000\n"
                            "  chord-cache prune --max-age-days 90 --json",
                            prepare};

}  // namespace chord::tools
