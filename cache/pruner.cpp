// See pruner.h.
#include "cache/pruner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "cache/manifest.h"

namespace chord::cache {
namespace {

constexpr std::int64_t kTemporaryLifeNs = std::int64_t{600} * 1'000'000'000;
// Other processes' writes go unseen for that share of the bounds; an eviction frees more than that,
// so that a full cache is not scanned at every publish.
constexpr std::uint64_t kBlindShare = 128;
constexpr std::uint64_t kSlackShare = 16;
constexpr int kDeepestOldTree = 2;

// The number of the schema whose entries a folder holds; -1 if the name is of something else.
int schema_of(std::string_view name) {
  if (!name.starts_with(Layout::kEntriesPrefix)) return -1;
  name.remove_prefix(Layout::kEntriesPrefix.size());
  int schema = -1;
  const auto [stop, problem] = std::from_chars(name.data(), name.data() + name.size(), schema);
  return problem == std::errc{} && stop == name.data() + name.size() ? schema : -1;
}

}  // namespace

Pruner::Pruner(Layout layout, Limits limits, FileSystem& files, const Clock& clock, LogSink log)
    : layout_(std::move(layout)),
      limits_(limits),
      files_(files),
      clock_(clock),
      log_(std::move(log)) {}

void Pruner::make_room(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const bool is_above =
      usage_.bytes + bytes > limits_.max_bytes || usage_.files + 1 > limits_.max_files;
  const bool is_blind = written_.bytes > limits_.max_bytes / kBlindShare ||
                        written_.files > limits_.max_files / kBlindShare;
  if (!is_known_ || is_above || is_blind) {
    const PruneReport report = prune(bytes);
    is_known_ = report.ran;
    if (report.ran) usage_ = report.usage;
    if (report.ran) written_ = {};
  }
  usage_.bytes += bytes;
  written_.bytes += bytes;
  ++usage_.files;
  ++written_.files;
}

PruneReport Pruner::prune(std::uint64_t room) {
  PruneReport report;
  std::unique_ptr<FileLock> held;
  FileStat root;
  if (files_.stat(layout_.root, root)) return report;
  report.ran = !root.exists;
  if (!root.is_directory) return report;
  if (files_.try_lock(layout_.root + "/prune.lock", held) || !held) return report;
  report.ran = true;
  sweep_older_schemas(report);
  sweep_locks(report);
  evict(scan(report), room, report);
  evictions_ += report.evicted;
  if (report.evicted + report.swept > 0)
    log_(LogLevel::debug,
         fmt::format("pruned {}: {} entries evicted, {} files swept, {} entries of {} bytes stay",
                     layout_.root, report.evicted, report.swept, report.usage.files,
                     report.usage.bytes));
  return report;
}

std::vector<Pruner::Found> Pruner::scan(PruneReport& report) {
  std::vector<Found> found;
  std::vector<std::string> shards;
  if (files_.list(layout_.entries(), shards)) return found;
  for (const std::string& shard : shards)
    scan_shard(layout_.entries() + "/" + shard, found, report);
  return found;
}

void Pruner::scan_shard(const std::string& shard, std::vector<Found>& found, PruneReport& report) {
  std::vector<std::string> names;
  if (files_.list(shard, names)) return;
  const std::int64_t now = clock_.now_ns();
  for (std::string& name : names) {
    std::string path = shard + "/" + name;
    FileStat stat;
    if (files_.stat(path, stat) || !stat.exists || stat.is_directory) continue;
    const bool is_temporary = name.starts_with(Layout::kTemporaryPrefix);
    if (is_temporary && std::llabs(now - stat.modified_ns) > kTemporaryLifeNs) {
      sweep_file(path, report);
      continue;
    }
    report.usage.bytes += stat.size;
    ++report.usage.files;
    if (!is_temporary)
      found.push_back(
          {std::move(path), std::move(name), stat.size, std::min(stat.modified_ns, now)});
  }
}

void Pruner::sweep_file(const std::string& path, PruneReport& report) {
  if (!files_.remove(path)) ++report.swept;
}

// A lock that can be taken is nobody's. It is removed while held: whoever has opened it before
// notices (FileSystem::try_lock).
void Pruner::sweep_locks(PruneReport& report) {
  std::vector<std::string> names;
  if (files_.list(layout_.locks(), names)) return;
  for (const std::string& name : names) {
    const std::string path = layout_.locks() + "/" + name;
    std::unique_ptr<FileLock> held;
    if (!files_.try_lock(path, held) && held) sweep_file(path, report);
  }
}

// Those of newer schemas are left to the library that made them.
void Pruner::sweep_older_schemas(PruneReport& report) {
  std::vector<std::string> names;
  if (files_.list(layout_.root, names)) return;
  for (const std::string& name : names) {
    const int schema = schema_of(name);
    if (schema >= 0 && schema < kSchemaVersion)
      sweep_tree(layout_.root + "/" + name, kDeepestOldTree, report);
  }
}

void Pruner::sweep_tree(const std::string& path, int depth, PruneReport& report) {
  FileStat stat;
  if (files_.stat(path, stat) || !stat.exists) return;
  if (!stat.is_directory) return sweep_file(path, report);
  std::vector<std::string> names;
  if (depth == 0 || files_.list(path, names)) return;
  for (const std::string& name : names) sweep_tree(path + "/" + name, depth - 1, report);
  (void)files_.remove(path);
}

void Pruner::evict(std::vector<Found> found, std::uint64_t room, PruneReport& report) {
  const auto fits = [&](std::uint64_t max_bytes, std::uint64_t max_files) {
    return report.usage.bytes + room <= max_bytes && report.usage.files + 1 <= max_files;
  };
  if (fits(limits_.max_bytes, limits_.max_files)) return;
  const std::unordered_set<std::string> pinned = pinned_names();
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.stamp_ns != b.stamp_ns ? a.stamp_ns < b.stamp_ns : a.name < b.name;
  });
  for (const Found& entry : found) {
    if (fits(limits_.max_bytes - limits_.max_bytes / kSlackShare,
             limits_.max_files - limits_.max_files / kSlackShare))
      return;
    if (pinned.contains(entry.name) || files_.remove(entry.path)) continue;
    ++report.evicted;
    report.usage.bytes -= entry.bytes;
    --report.usage.files;
  }
}

std::unordered_set<std::string> Pruner::pinned_names() {
  std::unordered_set<std::string> names;
  for (const Manifest& manifest : pinned_manifests(layout_, files_, log_))
    for (const ManifestKey& key : manifest.keys) names.insert(key.name);
  return names;
}

}  // namespace chord::cache
