// chord-cache stat: the folder as a sum.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cache/key.h"
#include "cache/pins.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using cache::FolderSummary;
using cache::LockFile;
using cache::Usage;

// Whether somebody holds the lock now: asks the kernel, and takes nothing.
bool is_held(const LockFile& lock) {
  const int fd = ::open(lock.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  const bool held = ::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  ::close(fd);
  return held;
}

std::string owner_of(const LockFile& lock) {
  const std::string owner = lock.owner.substr(0, lock.owner.find('\n'));
  return owner.empty() ? "a process that left no record" : one_line(owner);
}

struct Stat {
  FolderSummary summary;
  std::vector<cache::Pin> pins;
  std::vector<std::string> notes;
  std::int64_t now_ns = 0;
};

Json json_of(const Usage& usage) { return Json{{"entries", usage.files}, {"bytes", usage.bytes}}; }

Json json_of(const std::map<std::string, Usage>& parts) {
  Json json = Json::object();
  for (const auto& [part, usage] : parts) json[part] = json_of(usage);
  return json;
}

Json schemas_of(const FolderSummary& summary) {
  Json schemas = Json::array();
  for (const cache::SchemaUsage& one : summary.schemas)
    schemas.push_back(Json{{"schema", one.schema},
                           {"entries", one.usage.files},
                           {"bytes", one.usage.bytes},
                           {"in_use", one.schema == cache::kSchemaVersion}});
  return schemas;
}

Json locks_of(const FolderSummary& summary) {
  Json locks = Json::array();
  for (const LockFile& lock : summary.locks)
    locks.push_back(Json{{"key", lock.key}, {"held", is_held(lock)}, {"owner", owner_of(lock)}});
  return locks;
}

Json compilers_of(const FolderSummary& summary) {
  Json compilers = Json::array();
  for (const cache::RecordedCompiler& compiler : summary.recorded)
    compilers.push_back(
        Json{{"compiler", compiler.identity}, {"last_used", utc_text(compiler.last_use_ns)}});
  return compilers;
}

Json pins_of(const std::vector<cache::Pin>& pins) {
  Json json = Json::array();
  for (const cache::Pin& pin : pins) json.push_back(Json{{"label", pin.label}, {"keys", pin.keys}});
  return json;
}

Json time_of(const std::optional<std::int64_t>& ns) {
  return ns ? Json(utc_text(*ns)) : Json(nullptr);
}

Json json_of(const Stat& stat, const Folder& folder) {
  const FolderSummary& summary = stat.summary;
  const Options& options = folder.options;
  return Json{
      {"cache_dir", folder.layout().root},
      {"schema", cache::kSchemaVersion},
      {"entries", summary.entries.files},
      {"bytes", summary.entries.bytes},
      {"problems", summary.problems},
      {"schemas", schemas_of(summary)},
      {"limits",
       {{"max_bytes", *options.max_cache_bytes},
        {"max_files", *options.max_cache_files},
        {"max_age_days", *options.max_cache_age_days}}},
      {"pins", pins_of(stat.pins)},
      {"recorded_compilers", compilers_of(summary)},
      {"bad", {{"files", summary.bad.files}, {"bytes", summary.bad.bytes}}},
      {"temporaries", {{"files", summary.temporaries.files}, {"bytes", summary.temporaries.bytes}}},
      {"locks", locks_of(summary)},
      {"oldest_use", time_of(summary.oldest_use_ns)},
      {"newest_use", time_of(summary.newest_use_ns)},
      {"by_arch", json_of(summary.by_arch)},
      {"by_compiler", json_of(summary.by_compiler)},
      {"notes", stat.notes}};
}

std::string usage_text(const Usage& usage, const char* what) {
  return fmt::format("{} {}, {}", usage.files, what, size_text(usage.bytes));
}

class Lines {
 public:
  void add(std::string_view label, const std::string& value) {
    text_ += fmt::format("{:<12} {}\n", label, one_line(value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_limits(Lines& lines, const Options& options) {
  const std::int64_t days = *options.max_cache_age_days;
  lines.add("limits", fmt::format("{}, {} files, {}", size_text(*options.max_cache_bytes),
                                  *options.max_cache_files,
                                  days == 0 ? "any age" : fmt::format("{} days unused", days)));
}

std::string text_of(const Stat& stat, const Folder& folder) {
  const FolderSummary& summary = stat.summary;
  Lines lines;
  lines.add("cache", folder.layout().root);
  lines.add("entries", usage_text(summary.entries, "entries"));
  if (summary.problems > 0)
    lines.add("problems", fmt::format("{} entries are of no use; chord-cache verify names them",
                                      summary.problems));
  for (const cache::SchemaUsage& one : summary.schemas)
    lines.add(fmt::format("schema {}", one.schema),
              usage_text(one.usage, one.schema == cache::kSchemaVersion
                                        ? "entries"
                                        : "entries of another version of this library"));
  add_limits(lines, folder.options);
  if (summary.oldest_use_ns)
    lines.add("used", fmt::format("the last {} ago, the first {} ago",
                                  age_text(*summary.newest_use_ns, stat.now_ns),
                                  age_text(*summary.oldest_use_ns, stat.now_ns)));
  for (const auto& [arch, usage] : summary.by_arch)
    lines.add(one_line(arch), usage_text(usage, "entries"));
  for (const auto& [compiler, usage] : summary.by_compiler)
    lines.add("made by", fmt::format("{}: {}", compiler, usage_text(usage, "entries")));
  for (const cache::RecordedCompiler& compiler : summary.recorded)
    lines.add("compiler", fmt::format("{}, used {} ago", compiler.identity,
                                      age_text(compiler.last_use_ns, stat.now_ns)));
  for (const cache::Pin& pin : stat.pins)
    lines.add("pin", fmt::format("{} ({} keys)", pin.label, pin.keys));
  lines.add("set aside", usage_text(summary.bad, "damaged files"));
  lines.add("temporaries", usage_text(summary.temporaries, "files"));
  for (const LockFile& lock : summary.locks)
    lines.add("lock", fmt::format("{} {} {}", lock.key, is_held(lock) ? "held by" : "left by",
                                  owner_of(lock)));
  for (const std::string& note : stat.notes) lines.add("note", note);
  return lines.take();
}

Result<int> run(const Common& common) {
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::read));
  Stat stat;
  stat.now_ns = clock().now_ns();
  CHORD_TRY(stat.summary, folder.inspector.summary());
  stat.pins = cache::list_pins(folder.layout(), files(), noting(stat.notes));
  return common.json ? print_json(json_of(stat, folder)) : print_text(text_of(stat, folder));
}

Action prepare(CLI::App&) { return run; }

}  // namespace

const Command kStatCommand{"stat", "the folder as a sum: entries, limits, pins, locks, compilers",
                           "  chord-cache stat\n"
                           "  chord-cache stat --json --cache-dir /image/chord",
                           prepare};

}  // namespace chord::tools
