// What the cache of a handle has done.
#include "src/c_api/handles.h"
#include "src/c_api/structs.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;
using c_api::OutStruct;

chord_status_t chord_cache_get_counters(chord_handle_t handle, chord_cache_counters_t* counters) {
  return guarded("chord_cache_get_counters", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(const auto out, OutStruct<chord_cache_counters_t>::check(call, counters, "counters"));
    const CacheCounters ours = handle->engine.counters();
    chord_cache_counters_t c = chord_cache_counters_init();
    c.memory_hits = ours.memory_hits;
    c.disk_hits = ours.disk_hits;
    c.readonly_hits = ours.readonly_hits;
    c.remote_hits = ours.remote_hits;
    c.misses = ours.misses;
    c.compiles = ours.compiles;
    c.waits = ours.waits;
    c.bad_entries = ours.bad_entries;
    c.write_failures = ours.write_failures;
    c.evictions = ours.evictions;
    c.bytes_read = ours.bytes_read;
    c.bytes_written = ours.bytes_written;
    out.write(c);
    return {};
  });
}

chord_status_t chord_cache_metrics(chord_handle_t handle, char* text, size_t capacity,
                                   size_t* needed) {
  return guarded("chord_cache_metrics", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    return call.copy_text(prometheus_text(handle->engine.counters()), text, capacity, needed);
  });
}
