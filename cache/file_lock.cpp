// See file_lock.h.
#include "cache/file_lock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cache/printable.h"
#include "cache/units.h"

namespace chord::cache {
namespace {

constexpr std::int64_t kLongestPauseMs = 50;
constexpr std::size_t kMaxRecordBytes = 300;

std::string utc(std::int64_t now_ns) {
  const std::time_t seconds = static_cast<std::time_t>(now_ns / (1000 * kMillisecond));
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

}  // namespace

HeldKeyLock::HeldKeyLock(FileSystem& files, std::string path, std::unique_ptr<FileLock> lock)
    : files_(files), path_(std::move(path)), lock_(std::move(lock)) {}

HeldKeyLock::~HeldKeyLock() { (void)files_.remove(path_); }

KeyLocks::KeyLocks(Layout layout, FileSystem& files, const Clock& clock, LogSink log)
    : layout_(std::move(layout)), files_(files), clock_(clock), log_(std::move(log)) {}

KeyLocks::Outcome KeyLocks::acquire(const std::string& key_name, std::int64_t wait_ms,
                                    const std::function<bool()>& is_answered) {
  Outcome outcome;
  if (const FileError error = files_.make_directories(layout_.locks())) {
    log_(LogLevel::debug, fmt::format("no lock for key {}: {}", key_name, error.message()));
    return outcome;
  }
  const std::string path = layout_.lock(key_name);
  const std::int64_t deadline_ns = clock_.steady_ns() + wait_ms * kMillisecond;
  for (std::int64_t pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    std::unique_ptr<FileLock> held;
    if (const FileError error = files_.try_lock(path, held)) {
      log_(LogLevel::debug, fmt::format("no lock for key {}: {}", key_name, error.message()));
      return outcome;
    }
    if (held) outcome.lock = std::make_unique<HeldKeyLock>(files_, path, std::move(held));
    outcome.answered = is_answered();
    if (outcome.lock || outcome.answered) break;
    const std::int64_t left_ms = (deadline_ns - clock_.steady_ns()) / kMillisecond;
    if (left_ms <= 0) {
      log_(LogLevel::warn, fmt::format("waited {} ms for key {} from {}; going on without it",
                                       wait_ms, key_name, owner_of(path)));
      break;
    }
    if (!outcome.waited) say_whom_we_wait_for(key_name, wait_ms);
    outcome.waited = true;
    clock_.sleep_ms(std::min(pause_ms, left_ms));
  }
  if (outcome.lock && !outcome.answered)
    (void)files_.overwrite(
        path, fmt::format("{} since {}\n", files_.process_label(), utc(clock_.now_ns())));
  return outcome;
}

std::string KeyLocks::owner_of(const std::string& path) {
  std::string record;
  if (files_.read(path, record) || record.empty()) return "a process that left no record";
  return printable(record.substr(0, record.find('\n')), kMaxRecordBytes);
}

void KeyLocks::say_whom_we_wait_for(const std::string& key_name, std::int64_t wait_ms) {
  log_(LogLevel::info, fmt::format("waiting for key {} (at most {} ms): it is being made by {}",
                                   key_name, wait_ms, owner_of(layout_.lock(key_name))));
}

}  // namespace chord::cache
