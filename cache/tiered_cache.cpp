// Finding, making and publishing; see tiered_cache.h. What is recorded beside the entries stands in
// cache_records.cpp.
#include "cache/tiered_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace chord::cache {
namespace {

Status check_asked_for(const std::string& path, FileSystem& files) {
  FileStat stat;
  std::string found;
  if (const FileError error = files.stat(path, stat))
    found = error.message();
  else if (stat.exists && !stat.is_directory && !stat.is_symlink)
    found = "it is not a folder";
  if (found.empty()) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("cache folder {}", path), found,
               "name a folder, or a path where one can be made"};
}

}  // namespace

TieredCache::TieredCache(CacheSettings settings, FileSystem& files, Clock& clock, LogSink log)
    : settings_(std::move(settings)),
      files_(files),
      clock_(clock),
      reporter_(std::move(log), settings_.on_event),
      reader_(reporter_, settings_.signatures) {
  for (const std::string& folder : settings_.readonly_dirs)
    readonly_.push_back(std::make_unique<DiskTier>(folder, Access::read_only, files_, clock_));
  remotes_ = std::make_unique<Remotes>(settings_.remote_tiers, settings_.leases, reporter_, reader_,
                                       clock_);
  if (!settings_.writable_dir) return;
  const Layout layout{*settings_.writable_dir};
  writable_ = std::make_unique<DiskTier>(layout.root, Access::read_write, files_, clock_);
  locks_ = std::make_unique<KeyLocks>(layout, files_, clock_, reporter_.sink());
  const Limits limits{settings_.max_bytes, settings_.max_files, settings_.max_age_ns};
  pruner_ = std::make_unique<Pruner>(layout, limits, files_, clock_, reporter_.sink());
}

Result<std::unique_ptr<TieredCache>> TieredCache::open(CacheSettings settings, FileSystem& files,
                                                       Clock& clock, LogSink log) {
  if (!log) log = [](LogLevel, std::string_view) {};
  if (settings.writable_dir && settings.writable_dir_was_asked_for)
    CHORD_TRY(check_asked_for(*settings.writable_dir, files));
  settings.wait_ms = std::max<std::int64_t>(settings.wait_ms, 0);
  for (const std::string& folder : settings.readonly_dirs) {
    FileStat stat;
    const bool is_there = !files.stat(folder, stat) && stat.exists;
    if (!is_there)
      log(LogLevel::warn, fmt::format("read-only cache folder {} does not exist", folder));
  }
  return std::unique_ptr<TieredCache>(
      new TieredCache(std::move(settings), files, clock, std::move(log)));
}

SharedEntry TieredCache::find(const CacheKey& key) { return look(key, Damage::leave); }

SharedEntry TieredCache::fetch(const CacheKey& key) { return look(key, Damage::set_aside); }

SharedEntry TieredCache::look(const CacheKey& key, Damage damage) {
  if (SharedEntry entry = memory_.find(key)) {
    ++reporter_.counts.memory_hits;
    reporter_.event({.kind = CacheEvent::Kind::hit, .key = key.name, .tier = "memory"});
    return entry;
  }
  std::string why_not;
  SharedEntry entry = look_in_writable(key, damage, why_not);
  for (std::size_t i = 0; !entry && i < readonly_.size(); ++i)
    entry = look_in_folder(*readonly_[i], key, damage, reporter_.counts.readonly_hits, why_not);
  const bool came_from_remote = !entry;
  if (!entry) entry = look_in_remotes(key, damage, why_not);
  if (entry) {
    // A look that keeps nothing on disk keeps nothing in memory either: the next one would take
    // that for a hit and never fill the folder.
    const bool is_kept = damage == Damage::set_aside || !came_from_remote;
    if (is_kept) memory_.insert(key, entry);
    return entry;
  }
  ++reporter_.counts.misses;
  if (why_not.empty()) why_not = "there is no tier to look in";
  reporter_.log(LogLevel::debug, fmt::format("miss {}: {}", key.name, why_not));
  reporter_.event({.kind = CacheEvent::Kind::miss, .key = key.name, .text = why_not});
  return nullptr;
}

SharedEntry TieredCache::look_in_folder(DiskTier& tier, const CacheKey& key, Damage damage,
                                        std::atomic<std::uint64_t>& hits, std::string& why_not) {
  TierLook look = reader_.read(tier, TierOrigin::this_machine, key, damage, hits);
  if (look.entry) return std::move(look.entry);
  if (look.reason == MissReason::failed)
    reporter_.say(Trouble::failed,
                  fmt::format("cache {} can not be read: {}", tier.name(), look.text));
  append_reason(why_not, tier.name(), look.text);
  return nullptr;
}

SharedEntry TieredCache::look_in_writable(const CacheKey& key, Damage damage,
                                          std::string& why_not) {
  if (!writable_) return nullptr;
  return look_in_folder(*writable_, key, damage, reporter_.counts.disk_hits, why_not);
}

SharedEntry TieredCache::look_in_remotes(const CacheKey& key, Damage damage, std::string& why_not) {
  SharedEntry entry = remotes_->find(key, damage, why_not);
  if (entry && damage == Damage::set_aside) back_fill(key, *entry);
  return entry;
}

Result<SharedEntry> TieredCache::get_or_make(const CacheKey& key, const Maker& maker) {
  if (SharedEntry entry = fetch(key)) return entry;
  // A leader may wait for another process and for another machine first, and make the entry then.
  const std::int64_t patience_ms = 3 * settings_.wait_ms + 1000;
  bool joined = false;
  auto answer = flights_.run(
      key, patience_ms, [&] { return make(key, maker); }, joined);
  if (joined) ++reporter_.counts.waits;
  return answer;
}

Result<SharedEntry> TieredCache::make(const CacheKey& key, const Maker& maker) {
  // Another thread may have landed between our miss and our turn.
  if (SharedEntry entry = memory_.find(key)) {
    ++reporter_.counts.memory_hits;
    return entry;
  }
  SharedEntry answer;
  const KeyLocks::Outcome turn = wait_for_turn(key, answer);
  Remotes::Turn fleet;
  if (!answer) {
    fleet = remotes_->wait_for_turn(key, settings_.wait_ms);
    if (fleet.waited) ++reporter_.counts.waits;
    if (fleet.entry) back_fill(key, *fleet.entry);
    answer = std::move(fleet.entry);
  }
  if (answer) {
    memory_.insert(key, answer);
    return answer;
  }
  Result<Entry> made = maker();
  if (!made) return std::move(made).error();
  if (const Status identity = check_identity(*made, key); !identity)
    return Error{ErrorCode::internal, fmt::format("make cache entry {}", key.name),
                 identity.error().found, ""};
  ++reporter_.counts.compiles;
  settings_.signatures.sign(*made);
  // From here on the entry is served whatever the tiers do, and never from what was read back.
  const auto entry = std::make_shared<const Entry>(std::move(made).value());
  memory_.insert(key, entry);
  reporter_.event(
      {.kind = CacheEvent::Kind::compile, .key = key.name, .bytes = entry->cubin.size()});
  publish(key, serialize(*entry));
  return entry;
}

bool TieredCache::may_keep_what_is_made() const {
  return settings_.signatures.policy() == SignaturePolicy::accept_local ||
         settings_.signatures.signing_key() != nullptr;
}

KeyLocks::Outcome TieredCache::wait_for_turn(const CacheKey& key, SharedEntry& answer) {
  // Without a folder that may be written, or where nothing that is made here is believed, there is
  // nothing to wait for in it.
  if (!writable_ || !may_keep_what_is_made() || !writable_->make_root()) return {};
  KeyLocks::Outcome turn = locks_->acquire(key.name, settings_.wait_ms, [&] {
    std::string why_not;
    answer = look_in_writable(key, Damage::set_aside, why_not);
    return answer != nullptr;
  });
  if (turn.waited) {
    ++reporter_.counts.waits;
    reporter_.event({.kind = CacheEvent::Kind::wait, .key = key.name});
  }
  return turn;
}

// What came from a remote tier is kept here; a folder that does not take it has been named already
// or will be by the first publish.
void TieredCache::back_fill(const CacheKey& key, const Entry& entry) {
  if (!writable_) return;
  if (write_to_folder(key, serialize(entry))) return;
  ++reporter_.counts.write_failures;
}

void TieredCache::publish(const CacheKey& key, std::string_view bytes) {
  publish_to_folder(key, bytes);
  remotes_->publish(key, bytes);
}

void TieredCache::publish_to_folder(const CacheKey& key, std::string_view bytes) {
  std::string problem = settings_.why_no_writable_dir;
  if (!may_keep_what_is_made()) {
    problem = "signatures are required, and there is no signing key";
    ++reporter_.counts.write_failures;
  } else if (writable_) {
    const Status status = write_to_folder(key, bytes);
    if (status) return;
    problem = status.error().message();
    ++reporter_.counts.write_failures;
    // A folder that is not trusted has been named by the look-up; once is enough.
    if (reporter_.was_said(Trouble::refused) && !writable_->why_root_not_trusted().empty())
      reporter_.mark_said(Trouble::write_failure);
  }
  if (problem.empty()) return;
  reporter_.say(Trouble::write_failure,
                fmt::format("kernel is served but not cached: {}", problem));
  reporter_.event({.kind = CacheEvent::Kind::write_failure, .key = key.name, .text = problem});
}

Status TieredCache::write_to_folder(const CacheKey& key, std::string_view bytes) {
  CHORD_TRY(writable_->make_root());
  pruner_->make_room(bytes.size());
  CHORD_TRY(writable_->put(key, bytes));
  reporter_.counts.bytes_written += bytes.size();
  reporter_.event({.kind = CacheEvent::Kind::write,
                   .key = key.name,
                   .tier = writable_->name(),
                   .bytes = bytes.size()});
  return {};
}

Status TieredCache::adopt(const CacheKey& key, std::string_view bytes) {
  TierLook look = reader_.judge(bytes, TierOrigin::another_machine, key);
  if (!look.entry)
    return Error{ErrorCode::corrupt, fmt::format("take cache entry {}", key.name),
                 std::move(look.text), "let its maker sign it with a key that is trusted here"};
  // Into memory only where it would be lost otherwise: a bundle brings hundreds at a time.
  if (writable_) return write_to_folder(key, bytes);
  memory_.insert(key, std::move(look.entry));
  return {};
}

SharedEntry TieredCache::vouch(SharedEntry entry) {
  const bool has_key = settings_.signatures.signing_key() != nullptr;
  if (!has_key || settings_.signatures.check(*entry).is_good()) return entry;
  Entry copy = *entry;
  settings_.signatures.sign(copy);
  const auto own = std::make_shared<const Entry>(std::move(copy));
  memory_.insert(own->key, own);
  back_fill(own->key, *own);
  return own;
}

int TieredCache::share(const Entry& entry) { return remotes_->share(entry.key, serialize(entry)); }

CacheCounters TieredCache::counters() const {
  CacheCounters counters = reporter_.counters();
  counters.evictions = pruner_ ? pruner_->evictions() : 0;
  counters.remotes = remotes_->counters();
  return counters;
}

}  // namespace chord::cache
