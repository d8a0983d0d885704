// See fault_world.h.
#include "tests/cache/fault_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

using testing::Effect;

constexpr std::int64_t kHour = 3600;

constexpr int kErrorNumbers[] = {ENOENT, EEXIST, EBUSY, ESTALE, EXDEV,  ENOSPC, EDQUOT,
                                 EACCES, EINTR,  EIO,   EROFS,  ENOLCK, EMFILE, ELOOP};
constexpr const char* kCalls[] = {
    "read",   "read",     "write_exclusive",  "write_exclusive", "rename",
    "rename", "list",     "sync_directory",   "remove",          "stat",
    "touch",  "try_lock", "make_directories", "overwrite"};
constexpr const char* kParts[] = {"/v", "/v", "/v", "/locks", "/pins", "/bad", ".tmp-", "prune"};
constexpr Effect kEffects[] = {
    Effect::fail, Effect::fail, Effect::fail_after, Effect::pretend,       Effect::fail_halfway,
    Effect::cut,  Effect::flip, Effect::swap,       Effect::strange_owner, Effect::loose_mode};
constexpr std::uint32_t kPercents[] = {5, 20, 50, 100};

}  // namespace

const std::array<KnownEntry, kKeys>& known() {
  static const std::array<KnownEntry, kKeys> all = [] {
    std::array<KnownEntry, kKeys> entries;
    for (std::size_t i = 0; i < kKeys; ++i) {
      entries[i].key = make_key("kernel " + std::to_string(i));
      entries[i].entry = make_entry(entries[i].key, 300 + 100 * i);
    }
    return entries;
  }();
  return all;
}

FaultWorld::FaultWorld(std::uint32_t number, std::string folder, FileSystem& disk,
                       testing::FakeClock& clock, ChangeMode change_mode, FaultCounts& counts)
    : random_(number),
      folder_(std::move(folder)),
      counts_(counts),
      disk_(disk),
      clock_(clock),
      change_mode_(std::move(change_mode)) {
  random_.discard(8);  // neighbouring seeds begin alike
  roots_ = {folder_ + "/a", folder_ + "/b"};
  for (std::uint32_t i = 1 + below(6); i > 0; --i) rules_.push_back(make_rule());
  if (chance(20))
    files_.set_locks(chance(50) ? testing::FaultFileSystem::Locks::always_taken
                                : testing::FaultFileSystem::Locks::never_exclusive);
  files_.direct(
      [this](std::string_view call, const std::string& path) { return fault(call, path); });
  settings_.resize(2 + below(2));
  processes_.resize(settings_.size());
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    settings_[i] = make_settings();
    open(i);
  }
}

// A part of the rules is wide (any call, any path), a part narrow; some last, some pass.
FaultWorld::Rule FaultWorld::make_rule() {
  Rule rule{.call = {}, .part = {}, .effect = any_of(kEffects)};
  if (chance(70)) rule.call = any_of(kCalls);
  if (chance(40)) rule.part = any_of(kParts);
  rule.error_number = any_of(kErrorNumbers);
  rule.percent = any_of(kPercents);
  rule.first = chance(50) ? 0 : below(150);
  rule.last = rule.first + 1 + below(chance(30) ? 10 : 400);
  return rule;
}

testing::Fault FaultWorld::fault(std::string_view call, const std::string& path) {
  ++calls_;
  for (const Rule& rule : rules_) {
    if (calls_ < rule.first || calls_ > rule.last) continue;
    if (!rule.call.empty() && rule.call != call) continue;
    if (path.find(rule.part) == std::string::npos || !chance(rule.percent)) continue;
    ++counts_.faults;
    return {rule.effect, rule.error_number, static_cast<std::uint32_t>(random_())};
  }
  return {};
}

CacheSettings FaultWorld::make_settings() {
  CacheSettings settings;
  const bool second_root = chance(20);
  settings.writable_dir = roots_[second_root];
  if (second_root || chance(10)) settings.readonly_dirs = {roots_[!second_root]};
  settings.wait_ms = 100;
  if (chance(30)) settings.max_files = 1 + below(3);
  if (chance(30)) settings.max_bytes = 500 + below(2500);
  return settings;
}

LogSink FaultWorld::sink(std::size_t) {
  return [this, said = opened_](LogLevel level, std::string_view message) {
    if (level < LogLevel::warn) return;
    ++counts_.warnings;
    if (message.starts_with("waited "))
      ++waits_said_;
    else if (message.find("pin") != std::string_view::npos ||
             message.find("manifest") != std::string_view::npos)
      pins_said_.insert(fmt::format("{} {}", said, message));
    else
      ++warnings_;
  };
}

void FaultWorld::open(std::size_t process) {
  ++opened_;
  auto cache = TieredCache::open(settings_[process], files_, clock_, sink(process));
  if (!cache) return fail("open: " + cache.error().message());
  processes_[process] = std::move(cache).value();
}

void FaultWorld::fail(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

std::string FaultWorld::run() {
  const std::uint32_t steps = 3 + below(6);
  for (std::uint32_t i = 0; i < steps && problem_.empty(); ++i) {
    step();
    ++counts_.steps;
    // Five kinds of trouble are said once by each process, and a missing folder when it opens.
    if (warnings_ > 6 * opened_ || waits_said_ > makes_ || pins_said_.size() > 16 * opened_)
      fail(fmt::format("{} warnings of {} processes", warnings_, opened_));
    if (!problem_.empty()) problem_ = fmt::format("step {}: {}", i, problem_);
  }
  if (!problem_.empty()) return problem_;
  for (const auto& process : processes_) {
    const CacheCounters counters = process->counters();
    counts_.bad_entries += counters.bad_entries;
    counts_.write_failures += counters.write_failures;
    counts_.evictions += counters.evictions;
  }
  heal();
  std::set<std::string> used;
  for (const CacheSettings& settings : settings_) used.insert(*settings.writable_dir);
  for (const std::string& root : used)
    if (problem_.empty()) check_healed(root);
  return problem_.empty() ? problem_ : "after healing: " + problem_;
}

template <class Visit>
void FaultWorld::walk(const std::string& folder, Visit visit) {
  std::vector<std::string> names;
  (void)disk_.list(folder, names);
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    FileStat stat;
    (void)disk_.stat(path, stat);
    if (stat.is_directory) walk(path, visit);
    visit(path, stat);
  }
}

void FaultWorld::heal() {
  files_.heal();
  files_.set_locks(testing::FaultFileSystem::Locks::real);
  for (const std::string& root : roots_) {
    change_mode_(root, 0700);
    walk(root, [this](const std::string& path, const FileStat& stat) {
      if (stat.is_directory) change_mode_(path, 0700);
    });
  }
  processes_.clear();
}

void FaultWorld::check_healed(const std::string& root) {
  CacheSettings settings;
  settings.writable_dir = root;
  ++opened_;
  auto makers = TieredCache::open(settings, files_, clock_, sink(0));
  for (std::size_t key = 0; key < kKeys; ++key) {
    const Answer answer = (*makers)->get_or_make(
        known()[key].key, [&]() -> Result<Entry> { return known()[key].entry; });
    if (!answer.ok()) return fail(answer.error().message());
    check(*answer, key, "get_or_make");
  }
  if ((*makers)->counters().write_failures != 0) fail("an entry could not be written");
  auto readers = TieredCache::open(settings, files_, clock_, sink(0));
  for (std::size_t key = 0; key < kKeys; ++key)
    check((*readers)->find(known()[key].key), key, "find");
  if ((*readers)->counters().bad_entries != 0) fail("a bad entry is still there");
  const VerifyReport report = (*readers)->verify();
  if (!report.damaged.empty()) fail("damaged: " + report.damaged.front());
  if (report.entries != kKeys) fail(fmt::format("{} entries", report.entries));
  clock_.advance_s(kHour);
  if (!(*readers)->prune().ran) fail("can not prune");
  check_tree(root);
}

void FaultWorld::check_tree(const std::string& root) {
  const Layout layout{root};
  std::size_t entries = 0, bad = 0;
  walk(root, [&](const std::string& path, const FileStat& stat) {
    if (stat.is_directory) return;
    if (path.find(Layout::kTemporaryPrefix) != std::string::npos) fail("a temporary: " + path);
    if (path.starts_with(layout.locks())) fail("a lock: " + path);
    entries += path.starts_with(layout.entries());
    bad += path.starts_with(layout.bad());
  });
  if (entries != kKeys || bad > 16) fail(fmt::format("{} entries, {} bad ones", entries, bad));
}

}  // namespace chord::cache
