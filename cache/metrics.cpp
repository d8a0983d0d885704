// Counters of a cache in the text exposition format of Prometheus (version 0.0.4):
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "chord/cache_events.h"

namespace chord {
namespace {

// Label values may hold anything but a bare backslash, quote or line end.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\' || c == '"') safe.push_back('\\');
    safe += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return safe;
}

class Page {
 public:
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    append("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void value(std::uint64_t number) { append("{} {}\n", name_, number); }
  void value(std::string_view label, std::string_view of, std::uint64_t number) {
    append("{}{{{}=\"{}\"}} {}\n", name_, label, escaped(of), number);
  }
  void alone(std::string_view name, std::string_view help, std::uint64_t number) {
    metric(name, "counter", help);
    value(number);
  }
  std::string take() { return std::move(text_); }

 private:
  template <class... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  std::string text_;
  std::string name_;
};

void append_remotes(Page& page, const CacheCounters& counters) {
  if (counters.remotes.empty()) return;
  page.metric("chord_cache_remote_hits_total", "counter", "Entries that a remote store gave.");
  for (const RemoteCounters& remote : counters.remotes)
    page.value("remote", remote.name, remote.hits);
  page.metric("chord_cache_remote_failures_total", "counter",
              "Calls to a remote store that failed or ran out of time.");
  for (const RemoteCounters& remote : counters.remotes)
    page.value("remote", remote.name, remote.failures);
  page.metric("chord_cache_breaker_opened_total", "counter",
              "Times a remote store was left alone after failures.");
  for (const RemoteCounters& remote : counters.remotes)
    page.value("remote", remote.name, remote.opened);
  page.metric("chord_cache_breaker_state", "gauge", "0 closed, 1 open, 2 half open.");
  for (const RemoteCounters& remote : counters.remotes)
    page.value("remote", remote.name, static_cast<std::uint64_t>(remote.breaker));
  page.metric("chord_cache_write_breaker_state", "gauge", "0 closed, 1 open, 2 half open.");
  for (const RemoteCounters& remote : counters.remotes)
    page.value("remote", remote.name, static_cast<std::uint64_t>(remote.write_breaker));
}

}  // namespace

std::string prometheus_text(const CacheCounters& counters) {
  Page page;
  page.metric("chord_cache_hits_total", "counter", "Entries found, by tier.");
  page.value("tier", "memory", counters.memory_hits);
  page.value("tier", "disk", counters.disk_hits);
  page.value("tier", "readonly", counters.readonly_hits);
  page.value("tier", "remote", counters.remote_hits);
  page.alone("chord_cache_misses_total", "Look-ups that no tier could answer.", counters.misses);
  page.metric("chord_cache_no_value_total", "counter",
              "Answers of single tiers without an entry that may be loaded, by reason.");
  for (std::size_t i = 1; i < kMissReasons; ++i)
    page.value("reason", name(static_cast<MissReason>(i)), counters.no_value[i]);
  page.alone("chord_cache_compiles_total", "Entries made by this process.", counters.compiles);
  page.alone("chord_cache_waits_total", "Waits for another maker of the same key.", counters.waits);
  page.alone("chord_cache_bad_entries_total", "Entries that were there and were not believed.",
             counters.bad_entries);
  page.alone("chord_cache_write_failures_total", "Entries that could not be kept.",
             counters.write_failures);
  page.alone("chord_cache_evictions_total", "Entries evicted by the bounds.", counters.evictions);
  page.alone("chord_cache_read_bytes_total", "Bytes of entries read from folders and stores.",
             counters.bytes_read);
  page.alone("chord_cache_written_bytes_total", "Bytes of entries written to the folder.",
             counters.bytes_written);
  append_remotes(page, counters);
  return page.take();
}

}  // namespace chord
