// From a recipe to a cubin: the cache first, under every compiler identity that the cache folders
// have recorded; then, if the policy lets it, the compiler. Must not know what a cubin computes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cache/tiered_cache.h"
#include "chord/options.h"
#include "src/cubin/compiler.h"
#include "src/cubin/recipe.h"

namespace chord::cubin {

using EntryPointer = std::shared_ptr<const cache::Entry>;

class CubinStore {
 public:
  CubinStore(cache::TieredCache& cache, CubinCompiler& compiler, JitPolicy policy, LogSink log)
      : cache_(cache), compiler_(compiler), policy_(policy), log_(std::move(log)) {}

  // Looks the recipe up; nothing is compiled, no compiler is opened. Empty on a miss.
  EntryPointer find(const Recipe& recipe) const;

  // The key under the identity recorded last; empty when no folder has recorded one.
  std::optional<CacheKey> recorded_key(const Recipe& recipe) const;

  // Looks up, else compiles once over all threads and processes. `compiled` tells which.
  Result<EntryPointer> obtain(const Recipe& recipe, bool* compiled = nullptr);

 private:
  Result<cache::Entry> compile(const Recipe& recipe, const CacheKey& key);
  Error refused(const Recipe& recipe) const;

  cache::TieredCache& cache_;
  CubinCompiler& compiler_;
  JitPolicy policy_;
  LogSink log_;
};

}  // namespace chord::cubin
