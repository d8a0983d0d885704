// See pruner.h.
#include "cache/pruner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <utility>

namespace chord::cache {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kTemporaryLifeNs = 600 * kSecond;
// Long enough for a rollback to find its kernels where it left them.
constexpr std::int64_t kOlderSchemaLifeNs = std::int64_t{30} * 24 * 3600 * kSecond;
// Other processes' writes go unseen for that share of the bounds; an eviction frees more than that,
// so that a full cache is not scanned at every publish.
constexpr std::uint64_t kBlindShare = 128;
constexpr std::uint64_t kSlackShare = 16;
constexpr std::uint64_t kNoSlack = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMostSaid = 16;

bool is_gone(const FileError& error) { return error.error_number == ENOENT; }

}  // namespace

Pruner::Pruner(Layout layout, Limits limits, FileSystem& files, const Clock& clock, LogSink log)
    : layout_(std::move(layout)),
      limits_(limits),
      files_(files),
      clock_(clock),
      log_(std::move(log)) {}

void Pruner::make_room(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const bool is_blind = written_.bytes > limits_.max_bytes / kBlindShare ||
                        written_.files > limits_.max_files / kBlindShare;
  if (!is_known_ || is_blind || !fits(usage_, bytes, kNoSlack)) {
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
  sweep_locks(report);
  sweep_temporaries(layout_.pins(), report);
  sweep_temporaries(layout_.compilers(), report);
  std::vector<Found> found = scan(report);
  evict(found, room, report);
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
  std::vector<std::string> names;
  if (files_.list(layout_.root, names)) return found;
  for (const std::string& name : names)
    if (const int schema = Layout::schema_of(name); schema >= 0)
      scan_schema(layout_.root + "/" + name, schema, found, report);
  return found;
}

void Pruner::scan_schema(const std::string& folder, int schema, std::vector<Found>& found,
                         PruneReport& report) {
  std::vector<std::string> shards;
  if (files_.list(folder, shards)) return;
  for (const std::string& shard : shards)
    if (Layout::is_shard(shard)) scan_shard(folder + "/" + shard, schema, found, report);
}

void Pruner::scan_shard(const std::string& shard, int schema, std::vector<Found>& found,
                        PruneReport& report) {
  std::vector<std::string> names;
  if (files_.list(shard, names)) return;
  const std::int64_t now = clock_.now_ns();
  for (std::string& name : names) {
    std::string path = shard + "/" + name;
    FileStat stat;
    if (files_.stat(path, stat) || !stat.exists || stat.is_directory) continue;
    if (sweep_temporary(path, stat, report)) continue;
    report.usage.bytes += stat.size;
    ++report.usage.files;
    if (schema > kSchemaVersion || !is_content_name(name)) continue;
    const std::int64_t seen = std::max(stat.modified_ns, stat.changed_ns);
    found.push_back({std::move(path), std::move(name), stat.size, stat.modified_ns,
                     std::min(stat.modified_ns, now), std::max<std::int64_t>(now - seen, 0),
                     schema < kSchemaVersion});
  }
  // Whoever makes the folder again a moment later tries again when it goes under its feet.
  if (schema < kSchemaVersion && names.empty()) (void)files_.remove(shard);
}

bool Pruner::sweep_temporary(const std::string& path, const FileStat& stat, PruneReport& report) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (!name.starts_with(Layout::kTemporaryPrefix)) return false;
  if (std::llabs(clock_.now_ns() - stat.modified_ns) <= kTemporaryLifeNs) return false;
  sweep_file(path, report);
  return true;
}

void Pruner::sweep_temporaries(const std::string& folder, PruneReport& report) {
  std::vector<std::string> names;
  if (files_.list(folder, names)) return;
  for (const std::string& name : names) {
    FileStat stat;
    if (!name.starts_with(Layout::kTemporaryPrefix)) continue;
    const std::string path = folder + "/" + name;
    if (!files_.stat(path, stat) && stat.is_regular) sweep_temporary(path, stat, report);
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
    if (!name.ends_with(".lock")) continue;
    const std::string path = layout_.locks() + "/" + name;
    std::unique_ptr<FileLock> held;
    if (!files_.try_lock(path, held) && held) sweep_file(path, report);
  }
}

bool Pruner::fits(const Usage& usage, std::uint64_t room, std::uint64_t slack_share) const {
  return usage.bytes + room <= limits_.max_bytes - limits_.max_bytes / slack_share &&
         usage.files + 1 <= limits_.max_files - limits_.max_files / slack_share;
}

bool Pruner::is_unused_too_long(const Found& entry) const {
  if (entry.is_older_schema) return entry.unused_ns > kOlderSchemaLifeNs;
  return limits_.max_age_ns > 0 && entry.unused_ns > limits_.max_age_ns;
}

void Pruner::evict(std::vector<Found>& found, std::uint64_t room, PruneReport& report) {
  const bool any_unused = std::any_of(
      found.begin(), found.end(), [this](const Found& entry) { return is_unused_too_long(entry); });
  if (!any_unused && fits(report.usage, room, kNoSlack)) return;
  const PinnedNames pinned = pinned_names(
      layout_, files_, [this](LogLevel, std::string_view message) { warn(std::string(message)); });
  if (!pinned.unreadable.empty())
    return warn(fmt::format("nothing is evicted from {} while a pin can not be read: {}",
                            layout_.root, pinned.unreadable));
  std::erase_if(found, [&](const Found& entry) { return pinned.names.contains(entry.name); });
  evict_unused(found, report);
  evict_oldest(found, room, report);
}

void Pruner::evict_unused(std::vector<Found>& found, PruneReport& report) {
  std::erase_if(found, [&](const Found& entry) {
    if (!is_unused_too_long(entry)) return false;
    if (!drop(entry, report)) return true;
    if (entry.is_older_schema) {
      ++report.swept;
    } else {
      ++report.evicted;
      ++report.expired;
    }
    return true;
  });
}

void Pruner::evict_oldest(std::vector<Found>& found, std::uint64_t room, PruneReport& report) {
  if (fits(report.usage, room, kNoSlack)) return;
  // Of equal stamps the one that arrived first goes first.
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.last_use_ns, b.unused_ns, a.name) <
           std::tie(b.last_use_ns, a.unused_ns, b.name);
  });
  for (const Found& entry : found) {
    if (fits(report.usage, room, kSlackShare)) return;
    if (drop(entry, report)) ++report.evicted;
  }
}

// True if this call removed it. One that another pruner removed is gone from the usage all the
// same: else this one would evict as much again.
bool Pruner::drop(const Found& entry, PruneReport& report) {
  FileStat stat;
  if (files_.stat(entry.path, stat)) return false;
  if (stat.exists && stat.modified_ns != entry.stamp_ns) return false;  // used or made again
  const FileError error = stat.exists ? files_.remove(entry.path) : FileError{};
  if (error && !is_gone(error)) return false;
  report.usage.bytes -= entry.bytes;
  --report.usage.files;
  return stat.exists && !error;
}

void Pruner::warn(const std::string& message) {
  bool is_new = false;
  {
    std::lock_guard lock(said_mutex_);
    is_new = said_.size() < kMostSaid && said_.insert(message).second;
  }
  log_(is_new ? LogLevel::warn : LogLevel::debug, message);
}

}  // namespace chord::cache
