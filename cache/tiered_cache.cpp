// Finding, making and publishing; see tiered_cache.h. What is recorded beside the entries stands in
// cache_records.cpp.
#include "cache/tiered_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace chord::cache {
namespace {

// How long a remote tier that failed is not asked again.
constexpr std::int64_t kLeaveAloneNs = std::int64_t{30} * 1'000'000'000;

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
    : settings_(std::move(settings)), files_(files), clock_(clock), log_(std::move(log)) {
  for (const std::string& folder : settings_.readonly_dirs)
    readonly_.push_back(std::make_unique<DiskTier>(folder, Access::read_only, files_, clock_));
  for (const auto& tier : settings_.remote_tiers) {
    remotes_.push_back(std::make_unique<Remote>());
    remotes_.back()->tier = tier;
  }
  if (!settings_.writable_dir) return;
  const Layout layout{*settings_.writable_dir};
  writable_ = std::make_unique<DiskTier>(layout.root, Access::read_write, files_, clock_);
  locks_ = std::make_unique<KeyLocks>(layout, files_, clock_, log_);
  pruner_ = std::make_unique<Pruner>(layout, Limits{settings_.max_bytes, settings_.max_files},
                                     files_, clock_, log_);
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

std::shared_ptr<const Entry> TieredCache::find(const CacheKey& key) {
  return look(key, Damage::leave);
}

TieredCache::Shared TieredCache::look(const CacheKey& key, Damage damage) {
  if (Shared entry = memory_.find(key)) {
    ++counts_.memory_hits;
    return entry;
  }
  std::string why_not;
  Shared entry = look_in_writable(key, damage, why_not);
  for (std::size_t i = 0; !entry && i < readonly_.size(); ++i)
    entry = read(*readonly_[i], key, damage, counts_.readonly_hits, why_not);
  if (!entry) entry = look_in_remotes(key, damage, why_not);
  if (entry) {
    memory_.insert(key, entry);
  } else {
    ++counts_.misses;
    log_(LogLevel::debug, fmt::format("miss {}: {}", key.name,
                                      why_not.empty() ? "there is no tier to look in" : why_not));
  }
  return entry;
}

TieredCache::Shared TieredCache::look_in_writable(const CacheKey& key, Damage damage,
                                                  std::string& why_not) {
  if (!writable_) return nullptr;
  return read(*writable_, key, damage, counts_.disk_hits, why_not);
}

TieredCache::Shared TieredCache::look_in_remotes(const CacheKey& key, Damage damage,
                                                 std::string& why_not) {
  for (const auto& remote : remotes_) {
    if (is_left_alone(*remote)) continue;
    Shared entry = read(*remote->tier, key, damage, counts_.remote_hits, why_not);
    if (!entry) continue;
    if (damage == Damage::set_aside && writable_) (void)write_to_folder(key, serialize(*entry));
    return entry;
  }
  return nullptr;
}

TieredCache::Shared TieredCache::read(CacheTier& tier, const CacheKey& key, Damage damage,
                                      std::atomic<std::uint64_t>& hits, std::string& why_not) {
  TierAnswer answer = tier.get(key);
  Result<Entry> entry = parse_entry(answer.bytes);
  if (answer.lookup == Lookup::value && !entry) {
    // Before a file is called damaged: another process may just have replaced it.
    TierAnswer again = tier.get(key);
    if (again.lookup != Lookup::value || again.bytes != answer.bytes) {
      answer = std::move(again);
      entry = parse_entry(answer.bytes);
    }
  }
  if (answer.lookup != Lookup::value) {
    report_no_value(tier, answer);
    why_not += fmt::format("{}{}: {}", why_not.empty() ? "" : "; ", tier.name(), answer.reason);
    return nullptr;
  }
  counts_.bytes_read += answer.bytes.size();
  std::string problem;
  if (!entry) {
    problem = entry.error().found;
    if (damage == Damage::set_aside) tier.set_aside(key, problem);
  } else if (const Status identity = check_identity(*entry, key); !identity) {
    problem = identity.error().found;  // a whole entry of another key: it stays until replaced
  }
  if (problem.empty()) {
    ++hits;
    log_(LogLevel::debug, fmt::format("hit {} in {}", key.name, tier.name()));
    return std::make_shared<const Entry>(std::move(entry).value());
  }
  ++counts_.bad_entries;
  say(said_damaged_, fmt::format("bad cache entry {} in {}: {}", key.name, tier.name(), problem));
  why_not += fmt::format("{}{}: {}", why_not.empty() ? "" : "; ", tier.name(), problem);
  return nullptr;
}

void TieredCache::report_no_value(const CacheTier& tier, const TierAnswer& answer) {
  if (answer.lookup == Lookup::refused) {
    ++counts_.bad_entries;
    say(said_refused_, fmt::format("cache {}: {}", tier.name(), answer.reason));
  }
  if (answer.lookup != Lookup::failed) return;
  for (const auto& remote : remotes_)
    if (remote->tier.get() == &tier) return note_failure(*remote, answer.reason);
  say(said_failed_, fmt::format("cache {} can not be read: {}", tier.name(), answer.reason));
}

bool TieredCache::is_left_alone(const Remote& remote) const {
  return clock_.steady_ns() < remote.left_alone_until_ns;
}

void TieredCache::note_failure(Remote& remote, const std::string& reason) {
  remote.left_alone_until_ns = clock_.steady_ns() + kLeaveAloneNs;
  say(remote.was_named, fmt::format("cache {} failed: {}; left alone for {} s", remote.tier->name(),
                                    reason, kLeaveAloneNs / 1'000'000'000));
}

Result<std::shared_ptr<const Entry>> TieredCache::get_or_make(const CacheKey& key,
                                                              const Maker& maker) {
  if (Shared entry = look(key, Damage::set_aside)) return entry;
  // A leader may wait for another process first and make the entry then.
  const std::int64_t patience_ms = 2 * settings_.wait_ms + 1000;
  bool joined = false;
  auto answer = flights_.run(
      key, patience_ms, [&] { return make(key, maker); }, joined);
  if (joined) ++counts_.waits;
  return answer;
}

Result<TieredCache::Shared> TieredCache::make(const CacheKey& key, const Maker& maker) {
  // Another thread may have landed between our miss and our turn.
  if (Shared entry = memory_.find(key)) {
    ++counts_.memory_hits;
    return entry;
  }
  Shared answer;
  const KeyLocks::Outcome turn = wait_for_turn(key, answer);
  if (answer) {
    memory_.insert(key, answer);
    return answer;
  }
  Result<Entry> made = maker();
  if (!made) return std::move(made).error();
  if (const Status identity = check_identity(*made, key); !identity)
    return Error{ErrorCode::internal, fmt::format("make cache entry {}", key.name),
                 identity.error().found, ""};
  ++counts_.compiles;
  // From here on the entry is served whatever the tiers do, and never from what was read back.
  const auto entry = std::make_shared<const Entry>(std::move(made).value());
  memory_.insert(key, entry);
  publish(key, serialize(*entry));
  return entry;
}

KeyLocks::Outcome TieredCache::wait_for_turn(const CacheKey& key, Shared& answer) {
  // Without a folder that may be written there is nothing to wait for in it.
  if (!writable_ || !writable_->make_root()) return {};
  KeyLocks::Outcome turn = locks_->acquire(key.name, settings_.wait_ms, [&] {
    std::string why_not;
    answer = look_in_writable(key, Damage::set_aside, why_not);
    return answer != nullptr;
  });
  if (turn.waited) ++counts_.waits;
  return turn;
}

void TieredCache::publish(const CacheKey& key, std::string_view bytes) {
  if (writable_) {
    if (const Status status = write_to_folder(key, bytes); !status) {
      ++counts_.write_failures;
      // A folder that is not trusted has been named by the look-up; once is enough.
      if (said_refused_ && !writable_->why_root_not_trusted().empty()) said_write_failure_ = true;
      say(said_write_failure_,
          fmt::format("kernel is served but not cached: {}", status.error().message()));
    }
  } else if (!settings_.why_no_writable_dir.empty()) {
    say(said_write_failure_,
        fmt::format("kernel is served but not cached: {}", settings_.why_no_writable_dir));
  }
  for (const auto& remote : remotes_) {
    if (!remote->tier->is_writable() || is_left_alone(*remote)) continue;
    if (const Status status = remote->tier->put(key, bytes); !status) {
      ++counts_.write_failures;
      note_failure(*remote, status.error().message());
    }
  }
}

Status TieredCache::write_to_folder(const CacheKey& key, std::string_view bytes) {
  CHORD_TRY(writable_->make_root());
  pruner_->make_room(bytes.size());
  CHORD_TRY(writable_->put(key, bytes));
  counts_.bytes_written += bytes.size();
  return {};
}

// A warning the first time, a line at debug level afterwards.
void TieredCache::say(std::atomic<bool>& was_said, const std::string& message) {
  log_(was_said.exchange(true) ? LogLevel::debug : LogLevel::warn, message);
}

Status TieredCache::adopt(const CacheKey& key, std::string_view bytes) {
  CHORD_TRY(Entry entry, parse_entry(bytes));
  CHORD_TRY(check_identity(entry, key));
  memory_.insert(key, std::make_shared<const Entry>(std::move(entry)));
  return writable_ ? write_to_folder(key, bytes) : Status{};
}

CacheCounters TieredCache::counters() const {
  CacheCounters counters;
  counters.memory_hits = counts_.memory_hits;
  counters.disk_hits = counts_.disk_hits;
  counters.readonly_hits = counts_.readonly_hits;
  counters.remote_hits = counts_.remote_hits;
  counters.misses = counts_.misses;
  counters.compiles = counts_.compiles;
  counters.waits = counts_.waits;
  counters.bad_entries = counts_.bad_entries;
  counters.write_failures = counts_.write_failures;
  counters.evictions = pruner_ ? pruner_->evictions() : 0;
  counters.bytes_read = counts_.bytes_read;
  counters.bytes_written = counts_.bytes_written;
  return counters;
}

}  // namespace chord::cache
