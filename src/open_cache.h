// From options to an opened cache: folders and bounds, signatures, and the remote store with its
// back-end. The one place that knows how the pieces of the cache are put together; the engine and
// the tools share it.
#pragma once

#include <memory>

#include "cache/tiered_cache.h"
#include "chord/options.h"
#include "chord/overrides.h"
#include "chord/platform.h"
#include "src/cubin/compile_farm.h"
#if CHORD_HAS_REMOTE
#include "cache/remote/remote_url.h"
#endif

namespace chord {

struct OpenedCache {
  std::unique_ptr<cache::TieredCache> cache;
  std::unique_ptr<cubin::CompileFarm> farm;  // where the options ask for one
};

// `options` are resolved (base::resolve_options); their secrets and cache folder are filled in
// here. A remote store that can not be reached is no error, a URL or key file that can not be right
// is.
Result<OpenedCache> open_cache(Options& options, const EnvironmentLookup& lookup, FileSystem& files,
                               Clock& clock, const LogSink& log);

// The keys that the options name, read.
Result<cache::Signatures> signatures_of(const Options& options, FileSystem& files);

#if CHORD_HAS_REMOTE
// The remote store that the options name, with its secrets.
Result<cache::RemoteSettings> remote_settings(const Options& options);
#endif

}  // namespace chord
