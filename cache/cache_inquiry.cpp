// Questions to a TieredCache that change nothing: what every tier says of a key, which stored key
// is most like a missing one, what a manifest still lacks, and whether a folder is whole.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/tiered_cache.h"

namespace chord::cache {
namespace {

// A miss under CHORD_JIT=never is an error, and its message may take a moment, but not minutes.
constexpr std::size_t kMostComparedEntries = 2000;

// Calls visit(path) for every entry of a folder, until it answers false.
template <class Visit>
void for_each_entry(const Layout& layout, FileSystem& files, Visit visit) {
  std::vector<std::string> shards;
  std::vector<std::string> names;
  (void)files.list(layout.entries(), shards);
  for (const std::string& shard : shards) {
    const std::string folder = layout.entries() + "/" + shard;
    if (files.list(folder, names)) continue;
    for (const std::string& name : names)
      if (is_content_name(name) && !visit(folder + "/" + name)) return;
  }
}

}  // namespace

bool TieredCache::is_stored(const CacheKey& key) {
  const auto holds = [&](DiskTier& tier) {
    return ask(tier, TierOrigin::this_machine, key).reason == MissReason::none;
  };
  if (writable_ && holds(*writable_)) return true;
  return std::any_of(readonly_.begin(), readonly_.end(),
                     [&](const std::unique_ptr<DiskTier>& tier) { return holds(*tier); });
}

std::optional<NearestEntry> TieredCache::nearest(const CacheKey& key) {
  std::optional<NearestEntry> best;
  std::size_t left = kMostComparedEntries;
  const auto compare = [&](const std::string& path) {
    std::string bytes;
    if (files_.read(path, bytes)) return true;
    const Result<Entry> entry = parse_entry(bytes);
    if (!entry || entry->key == key) return --left > 0;
    std::vector<std::string> labels = differing_fields(key.text, entry->key.text);
    if (!best || labels.size() < best->differing_fields.size())
      best = NearestEntry{entry->key.name, std::move(labels)};
    return --left > 0;
  };
  if (writable_) for_each_entry(writable_->layout(), files_, compare);
  for (std::size_t i = 0; left > 0 && i < readonly_.size(); ++i)
    for_each_entry(readonly_[i]->layout(), files_, compare);
  return best;
}

VerifyReport TieredCache::verify() {
  VerifyReport report;
  if (!writable_) return report;
  for_each_entry(writable_->layout(), files_, [&](const std::string& path) {
    std::string bytes;
    const FileError error = files_.read(path, bytes);
    const Result<Entry> entry = parse_entry(bytes);
    ++report.entries;
    report.bytes += bytes.size();
    if (error || !entry || !path.ends_with(entry->key.name)) report.damaged.push_back(path);
    return true;
  });
  return report;
}

TierReport TieredCache::ask(CacheTier& tier, TierOrigin origin, const CacheKey& key) const {
  TierReport report{tier.name(), MissReason::none, {}};
  TierAnswer answer = tier.get(key);
  if (answer.lookup != Lookup::value) {
    report.reason = TierReader::reason_of(answer.lookup, origin);
    report.text = std::move(answer.reason);
    return report;
  }
  TierLook look = reader_.judge(answer.bytes, origin, key);
  report.reason = look.reason;
  report.text = std::move(look.text);
  return report;
}

std::vector<TierReport> TieredCache::inquire(const CacheKey& key) {
  std::vector<TierReport> reports;
  if (writable_) reports.push_back(ask(*writable_, TierOrigin::this_machine, key));
  for (const auto& tier : readonly_) reports.push_back(ask(*tier, TierOrigin::this_machine, key));
  for (CacheTier* tier : remotes_->tiers())
    reports.push_back(ask(*tier, TierOrigin::another_machine, key));
  return reports;
}

bool TieredCache::is_shared(const CacheKey& key) { return remotes_->holds(key); }

CoverageReport TieredCache::coverage(const Manifest& manifest) {
  CoverageReport report;
  report.keys = manifest.keys.size();
  for (const ManifestKey& wanted : manifest.keys) {
    const CacheKey key{.text = {}, .name = wanted.name};
    if (!is_stored(key) && !remotes_->holds(key)) report.missing.push_back(wanted);
  }
  return report;
}

}  // namespace chord::cache
