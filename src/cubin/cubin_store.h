// From a recipe to a cubin: the cache first, under every compiler identity that the cache folders
// and remote tiers have recorded; then, if the policy lets it, the farm where there is one, and the
// compiler of this machine. Must not know what a cubin computes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "cache/tiered_cache.h"
#include "chord/options.h"
#include "src/cubin/compile_farm.h"
#include "src/cubin/compiler.h"
#include "src/cubin/recipe.h"

namespace chord::cubin {

using EntryPointer = std::shared_ptr<const cache::Entry>;

class CubinStore {
 public:
  CubinStore(cache::TieredCache& cache, CubinCompiler& compiler, JitPolicy policy, LogSink log,
             CompileFarm* farm = nullptr)
      : cache_(cache), compiler_(compiler), policy_(policy), log_(std::move(log)), farm_(farm) {}

  // Looks the recipe up; nothing is compiled, no compiler is opened. Empty on a miss.
  EntryPointer find(const Recipe& recipe) const;

  // The same for a recipe that is going to be used: what a remote tier has is kept in the folder.
  EntryPointer fetch(const Recipe& recipe) const;

  // The key under the identity recorded last; empty when no folder has recorded one.
  std::optional<CacheKey> recorded_key(const Recipe& recipe) const;

  // Looks up, else compiles once over all threads and processes. `compiled` tells which.
  Result<EntryPointer> obtain(const Recipe& recipe, bool* compiled = nullptr);

 private:
  using Look = EntryPointer (cache::TieredCache::*)(const CacheKey&);
  EntryPointer look(const Recipe& recipe, Look look) const;
  // Empty with a reason in `problem` when the farm did not help.
  EntryPointer ask_farm(const Recipe& recipe, std::string& problem);
  Result<cache::Entry> compile(const Recipe& recipe, const CacheKey& key);
  Error refused(const Recipe& recipe) const;

  cache::TieredCache& cache_;
  CubinCompiler& compiler_;
  JitPolicy policy_;
  LogSink log_;
  CompileFarm* farm_;
  std::atomic<bool> said_farm_problem_{false};
};

}  // namespace chord::cubin
