// Counters as Prometheus reads them, and events as a callback sees them.
#include <map>
#include <set>
#include <sstream>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

using Metrics = CacheTest;

// name{labels} -> value of every sample; fails on a line that is neither sample nor comment.
std::map<std::string, std::uint64_t> samples_of(const std::string& page) {
  std::map<std::string, std::uint64_t> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const std::size_t space = line.rfind(' ');
    EXPECT_NE(space, std::string::npos) << line;
    const std::string name = line.substr(0, space);
    EXPECT_TRUE(name.starts_with("chord_cache_")) << line;
    EXPECT_TRUE(samples.emplace(name, std::stoull(line.substr(space + 1))).second) << line;
  }
  return samples;
}

TEST_F(Metrics, EveryCounterIsASampleOfItsOwn) {
  CacheCounters counters;
  std::uint64_t next = 1;
  for (std::uint64_t* counter :
       {&counters.memory_hits, &counters.disk_hits, &counters.readonly_hits, &counters.remote_hits,
        &counters.misses, &counters.compiles, &counters.waits, &counters.bad_entries,
        &counters.write_failures, &counters.evictions, &counters.bytes_read,
        &counters.bytes_written})
    *counter = next++;
  for (std::size_t i = 1; i < kMissReasons; ++i) counters.no_value[i] = next++;
  counters.remotes.push_back(
      {"redis://a \"b\"\\", BreakerState::open, BreakerState::half_open, next++, next++, next++});
  const auto samples = samples_of(prometheus_text(counters));
  EXPECT_EQ(samples.at("chord_cache_hits_total{tier=\"remote\"}"), counters.remote_hits);
  EXPECT_EQ(samples.at("chord_cache_no_value_total{reason=\"unknown_signer\"}"),
            counters.no_value[static_cast<std::size_t>(MissReason::unknown_signer)]);
  EXPECT_EQ(samples.at("chord_cache_breaker_state{remote=\"redis://a \\\"b\\\"\\\\\"}"), 1u);
  std::set<std::uint64_t> values;
  for (const auto& [name, value] : samples) values.insert(value);
  EXPECT_EQ(samples.size(), 12 + (kMissReasons - 1) + 5);
  for (std::uint64_t value = 1; value < next; ++value) EXPECT_TRUE(values.contains(value)) << value;
}

TEST_F(Metrics, EveryMetricHasHelpAndTypeOnce) {
  const std::string page = prometheus_text(CacheCounters{});
  for (const auto& [sample, value] : samples_of(page)) {
    const std::string type = "# TYPE " + sample.substr(0, sample.find('{')) + " counter\n";
    const std::size_t at = page.find(type);
    EXPECT_NE(at, std::string::npos) << sample;
    EXPECT_EQ(page.find(type, at + 1), std::string::npos) << sample;
  }
}

TEST_F(Metrics, EventsTellWhatTheCountersCount) {
  std::map<CacheEvent::Kind, int> seen;
  CacheSettings told = settings();
  told.on_event = [&](const CacheEvent& event) { ++seen[event.kind]; };
  const CacheKey key = make_key("a");
  ASSERT_TRUE(open(told)->get_or_make(key, maker(key)).ok());
  const auto cache = open(told);
  EXPECT_NE(cache->find(key), nullptr);
  EXPECT_NE(cache->find(key), nullptr);
  EXPECT_EQ(seen[CacheEvent::Kind::miss], 1);
  EXPECT_EQ(seen[CacheEvent::Kind::compile], 1);
  EXPECT_EQ(seen[CacheEvent::Kind::write], 1);
  EXPECT_EQ(seen[CacheEvent::Kind::hit], 2);
  EXPECT_EQ(cache->counters().disk_hits, 1u);
  EXPECT_EQ(cache->counters().memory_hits, 1u);
}

TEST_F(Metrics, ACallbackThatThrowsStopsNothing) {
  CacheSettings told = settings();
  told.on_event = [](const CacheEvent&) { throw 1; };
  const CacheKey key = make_key("a");
  EXPECT_TRUE(open(told)->get_or_make(key, maker(key)).ok());
}

}  // namespace
}  // namespace chord::cache
