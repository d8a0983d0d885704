// How a cache tells what happened: counters for machines, events for whoever asked for them, and a
// log that says each kind of trouble once aloud and afterwards only at debug level.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "chord/cache_events.h"
#include "chord/platform.h"

namespace chord::cache {

enum class Trouble {
  write_failure,
  refused,
  failed,
  damaged,
  not_vouched_for,
  not_shared,
  bad_pin
};
inline constexpr std::size_t kTroubles = 7;

class Reporter {
 public:
  Reporter(LogSink log, CacheEventSink sink);

  struct Counts {
    std::atomic<std::uint64_t> memory_hits{0}, disk_hits{0}, readonly_hits{0}, remote_hits{0};
    std::atomic<std::uint64_t> misses{0}, compiles{0}, waits{0}, bad_entries{0};
    std::atomic<std::uint64_t> write_failures{0}, bytes_read{0}, bytes_written{0};
    std::array<std::atomic<std::uint64_t>, kMissReasons> no_value{};
  };
  Counts counts;

  // Without what other parts count: evictions, remotes.
  CacheCounters counters() const;

  void log(LogLevel level, std::string_view message) const { log_(level, message); }
  const LogSink& sink() const { return log_; }
  // A warning the first time, a line at debug level afterwards.
  void say(Trouble trouble, std::string_view message);
  bool was_said(Trouble trouble) const;
  void mark_said(Trouble trouble);

  void event(const CacheEvent& event) const;

 private:
  LogSink log_;
  CacheEventSink sink_;
  std::array<std::atomic<bool>, kTroubles> said_{};
};

}  // namespace chord::cache
