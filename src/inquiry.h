// Why a cubin is in the cache, or is not: every tier's answer, and the nearest entry of a miss.
#pragma once

#include <string>

#include "cache/tiered_cache.h"
#include "chord/engine.h"
#include "src/cubin/cubin_store.h"

namespace chord {

Result<Inquiry> inquire(const cubin::Recipe& recipe, const cubin::CubinStore& store,
                        cache::TieredCache& cache);
// Of a key's name alone: its fields are not known, so nothing can be called near.
Result<Inquiry> inquire(const std::string& key, cache::TieredCache& cache);

}  // namespace chord
