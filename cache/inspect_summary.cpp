// The folder as a sum (inspect.h).
#include <algorithm>
#include <utility>

#include "cache/inspect.h"
#include "cache/trust.h"

namespace chord::cache {
namespace {

constexpr std::size_t kMostOwnerBytes = 300;

void add(Usage& usage, std::uint64_t bytes) {
  usage.bytes += bytes;
  ++usage.files;
}

void add(Usage& usage, const Usage& more) {
  usage.bytes += more.bytes;
  usage.files += more.files;
}

}  // namespace

// Files of a folder whose names start so. What can not be read counts nothing: it is a sum for
// people.
Usage Inspector::usage_of(const std::string& folder, std::string_view prefix) const {
  Usage usage;
  std::vector<std::string> names;
  if (files_->list(folder, names)) return usage;
  for (const std::string& name : names) {
    FileStat stat;
    if (!name.starts_with(prefix) || files_->stat(folder + "/" + name, stat)) continue;
    if (stat.exists && !stat.is_directory) add(usage, stat.size);
  }
  return usage;
}

Status Inspector::add_schemas(FolderSummary& summary) const {
  CHORD_TRY(const std::vector<std::string> names, names_in(layout_.root));
  for (const std::string& name : names) {
    const int schema = Layout::schema_of(name);
    if (schema < 0) continue;
    SchemaUsage found{schema, {}};
    const std::string entries = layout_.root + "/" + name;
    std::vector<std::string> shards;
    if (files_->list(entries, shards)) continue;  // this library's own: add_entries says why
    for (const std::string& shard : shards) {
      if (!Layout::is_shard(shard)) continue;
      add(found.usage, usage_of(entries + "/" + shard, shard));
      add(summary.temporaries, usage_of(entries + "/" + shard, Layout::kTemporaryPrefix));
    }
    summary.schemas.push_back(found);
  }
  std::sort(summary.schemas.begin(), summary.schemas.end(),
            [](const SchemaUsage& a, const SchemaUsage& b) { return a.schema < b.schema; });
  return {};
}

Status Inspector::add_entries(FolderSummary& summary) const {
  return for_each([&summary](const EntrySummary& entry, const Entry*) {
    add(summary.entries, entry.bytes);
    summary.oldest_use_ns =
        std::min(summary.oldest_use_ns.value_or(entry.last_use_ns), entry.last_use_ns);
    summary.newest_use_ns =
        std::max(summary.newest_use_ns.value_or(entry.last_use_ns), entry.last_use_ns);
    if (!entry.is_good()) {
      ++summary.problems;
      return true;
    }
    add(summary.by_arch[entry.arch], entry.bytes);
    add(summary.by_compiler[entry.compiler], entry.bytes);
    return true;
  });
}

Status Inspector::add_locks(FolderSummary& summary) const {
  constexpr std::string_view kEnding = ".lock";
  CHORD_TRY(const std::vector<std::string> names, names_in(layout_.locks()));
  for (const std::string& name : names) {
    if (!name.ends_with(kEnding)) continue;
    LockFile lock{layout_.locks() + "/" + name, name.substr(0, name.size() - kEnding.size()), {}};
    if (files_->read(lock.path, lock.owner)) continue;  // its holder has just removed it
    lock.owner.resize(std::min(lock.owner.size(), kMostOwnerBytes));
    summary.locks.push_back(std::move(lock));
  }
  return {};
}

Result<FolderSummary> Inspector::summary() const {
  FolderSummary summary;
  CHORD_TRY(add_schemas(summary));
  CHORD_TRY(add_entries(summary));
  CHORD_TRY(add_locks(summary));
  for (const std::string& folder : {layout_.pins(), layout_.compilers()})
    add(summary.temporaries, usage_of(folder, Layout::kTemporaryPrefix));
  summary.bad = usage_of(layout_.bad(), "");
  summary.recorded = recorded_compilers(layout_, Trust::own_and_root, *files_);
  return summary;
}

}  // namespace chord::cache
