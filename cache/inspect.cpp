// See inspect.h.
#include "cache/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <utility>

#include "cache/disk_tier.h"
#include "cache/key.h"
#include "cache/trust.h"

namespace chord::cache {
namespace {

constexpr std::size_t kNameDigits = 32;
constexpr std::size_t kShardDigits = 2;
constexpr std::size_t kMostCandidates = 8;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

void set_problem(EntrySummary& summary, MissReason problem, std::string text) {
  summary.problem = problem;
  summary.problem_text = std::move(text);
}

void set_problem(EntrySummary& summary, const TierAnswer& answer) {
  const MissReason problem = answer.lookup == Lookup::absent    ? MissReason::absent
                             : answer.lookup == Lookup::refused ? MissReason::untrusted
                                                                : MissReason::failed;
  set_problem(summary, problem, answer.reason);
}

void set_facts(EntrySummary& summary, const Entry& entry) {
  summary.kernel_name = entry.kernel_name;
  summary.arch = entry.arch;
  summary.compiler = entry.compiler;
  summary.signer = entry.signer;
  summary.compile_ms = entry.compile_ms;
}

// What a reader of the cache checks, without a key to compare with: the name stands for it.
void check_bytes(InspectedEntry& found, std::string_view bytes) {
  Result<Entry> entry = parse_entry(bytes);
  if (!entry)
    return set_problem(found.summary,
                       is_other_schema(bytes) ? MissReason::older_schema : MissReason::damaged,
                       entry.error().found);
  if (entry->key.name != found.summary.key)
    return set_problem(found.summary, MissReason::other_key,
                       fmt::format("it is the entry of key {}", entry->key.name));
  if (const Status identity = check_identity(*entry, entry->key); !identity)
    return set_problem(found.summary, MissReason::other_key, identity.error().found);
  set_facts(found.summary, *entry);
  found.entry = std::move(entry).value();
}

}  // namespace

bool is_key_prefix(std::string_view text) {
  return text.size() >= Inspector::kShortestPrefix && text.size() <= kNameDigits && is_hex(text);
}

Inspector::Inspector(Layout layout, FileSystem& files, const Clock& clock)
    : layout_(std::move(layout)), files_(&files), clock_(&clock) {}

Result<Inspector> Inspector::open(const std::string& root, FileSystem& files, const Clock& clock) {
  const std::string asked = fmt::format("look into cache folder {}", root);
  FileStat stat;
  if (const FileError error = files.stat(root, stat))
    return Error{ErrorCode::io_error, asked, error.message(), ""};
  if (!stat.exists)
    return Error{ErrorCode::not_found, asked, "it does not exist",
                 "name another folder, or fill this one with chord-prewarm"};
  std::string why = why_not_trusted(stat, Trust::own_and_root, files.user());
  if (why.empty() && !stat.is_directory) why = "it is not a folder";
  if (!why.empty())
    return Error{ErrorCode::invalid_argument, asked, std::move(why),
                 "a cache folder belongs to its user or to root, and nobody else may write it"};
  return Inspector(Layout{root}, files, clock);
}

// A folder that is not there holds nothing.
Result<std::vector<std::string>> Inspector::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  const FileError error = files_->list(folder, names);
  if (error && error.error_number != ENOENT)
    return Error{ErrorCode::io_error, fmt::format("look into cache folder {}", layout_.root),
                 error.message(), ""};
  return names;
}

InspectedEntry Inspector::inspect(const std::string& shard, const std::string& name) const {
  InspectedEntry found;
  found.summary.key = name;
  found.summary.path = fmt::format("{}/{}/{}", layout_.entries(), shard, name);
  FileStat stat;
  if (!files_->stat(found.summary.path, stat)) {
    found.summary.bytes = stat.size;
    found.summary.last_use_ns = stat.modified_ns;
  }
  if (!name.starts_with(shard)) {
    set_problem(found.summary, MissReason::other_key,
                fmt::format("it lies in {}, where no look-up comes", shard));
    return found;
  }
  DiskTier tier(layout_.root, Access::read_only, *files_, *clock_);
  const TierAnswer answer = tier.get(CacheKey{{}, name});
  if (answer.lookup != Lookup::value)
    set_problem(found.summary, answer);
  else
    check_bytes(found, answer.bytes);
  return found;
}

Status Inspector::for_each(const Visit& visit) const {
  CHORD_TRY(const std::vector<std::string> shards, names_in(layout_.entries()));
  for (const std::string& shard : shards) {
    if (!Layout::is_shard(shard)) continue;
    CHORD_TRY(const std::vector<std::string> names, names_in(layout_.shard(shard)));
    for (const std::string& name : names) {
      if (!is_content_name(name)) continue;
      const InspectedEntry found = inspect(shard, name);
      if (found.summary.problem == MissReason::absent) continue;  // evicted since it was listed
      if (!visit(found.summary, found.entry ? &*found.entry : nullptr)) return {};
    }
  }
  return {};
}

Result<InspectedEntry> Inspector::read(const std::string& name) const {
  if (is_content_name(name)) {
    InspectedEntry found = inspect(name.substr(0, kShardDigits), name);
    if (found.summary.problem != MissReason::absent) return found;
  }
  return Error{ErrorCode::cache_miss, fmt::format("cache entry {}", name),
               fmt::format("{} has none of that key", layout_.root), ""};
}

Result<std::string> Inspector::resolve_prefix(std::string_view prefix) const {
  const std::string asked = fmt::format("cache entry {}", prefix.substr(0, 2 * kNameDigits));
  if (!is_key_prefix(prefix))
    return Error{ErrorCode::invalid_argument, asked, "that is no key",
                 fmt::format("give the first {} to {} digits of a key, in lower case",
                             kShortestPrefix, kNameDigits)};
  CHORD_TRY(std::vector<std::string> names, names_in(layout_.shard(prefix)));
  std::erase_if(names, [&](const std::string& name) {
    return !is_content_name(name) || !name.starts_with(prefix);
  });
  if (names.empty())
    return Error{ErrorCode::cache_miss, asked, fmt::format("{} has no such key", layout_.root), ""};
  if (names.size() == 1) return names.front();
  const std::size_t count = names.size();
  if (count > kMostCandidates) names.resize(kMostCandidates);
  return Error{ErrorCode::invalid_argument, asked,
               fmt::format("{} keys start so: {}{}", count, fmt::join(names, ", "),
                           count > kMostCandidates ? ", ..." : ""),
               "give more digits"};
}

}  // namespace chord::cache
