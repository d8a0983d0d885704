// See reporter.h.
#include "cache/reporter.h"

#include <utility>

namespace chord::cache {

Reporter::Reporter(LogSink log, CacheEventSink sink)
    : log_(std::move(log)), sink_(std::move(sink)) {}

CacheCounters Reporter::counters() const {
  CacheCounters counters;
  counters.memory_hits = counts.memory_hits;
  counters.disk_hits = counts.disk_hits;
  counters.readonly_hits = counts.readonly_hits;
  counters.remote_hits = counts.remote_hits;
  counters.misses = counts.misses;
  counters.compiles = counts.compiles;
  counters.waits = counts.waits;
  counters.bad_entries = counts.bad_entries;
  counters.write_failures = counts.write_failures;
  counters.bytes_read = counts.bytes_read;
  counters.bytes_written = counts.bytes_written;
  for (std::size_t i = 0; i < kMissReasons; ++i) counters.no_value[i] = counts.no_value[i];
  return counters;
}

void Reporter::say(Trouble trouble, std::string_view message) {
  const bool was_said = said_[static_cast<std::size_t>(trouble)].exchange(true);
  log_(was_said ? LogLevel::debug : LogLevel::warn, message);
}

bool Reporter::was_said(Trouble trouble) const { return said_[static_cast<std::size_t>(trouble)]; }

void Reporter::mark_said(Trouble trouble) { said_[static_cast<std::size_t>(trouble)] = true; }

void Reporter::event(const CacheEvent& event) const {
  if (!sink_) return;
  try {
    sink_(event);
  } catch (...) {
    log_(LogLevel::debug, "the cache event callback threw; its event is lost");
  }
}

}  // namespace chord::cache
