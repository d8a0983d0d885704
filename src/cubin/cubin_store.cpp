// The order of asking: cache under recorded identities, policy, compiler. See the header.
#include "src/cubin/cubin_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/cuda/entry.h"

namespace chord::cubin {

EntryPointer CubinStore::look(const Recipe& recipe, Look look) const {
  std::vector<std::string> asked = cache_.compiler_identities();
  for (const std::string& identity : asked)
    if (EntryPointer entry = (cache_.*look)(key_of(recipe, identity))) return entry;
  // Only now, since it may cost a round trip: a machine without a record of its own is new.
  for (const std::string& identity : cache_.remote_compiler_identities()) {
    if (std::find(asked.begin(), asked.end(), identity) != asked.end()) continue;
    if (EntryPointer entry = (cache_.*look)(key_of(recipe, identity))) return entry;
  }
  return nullptr;
}

EntryPointer CubinStore::find(const Recipe& recipe) const {
  return look(recipe, &cache::TieredCache::find);
}

EntryPointer CubinStore::fetch(const Recipe& recipe) const {
  return look(recipe, &cache::TieredCache::fetch);
}

std::optional<CacheKey> CubinStore::recorded_key(const Recipe& recipe) const {
  std::vector<std::string> identities = cache_.compiler_identities();
  if (identities.empty()) identities = cache_.remote_compiler_identities();
  if (identities.empty()) return std::nullopt;
  return key_of(recipe, identities.front());
}

Result<EntryPointer> CubinStore::obtain(const Recipe& recipe, bool* compiled) {
  if (compiled != nullptr) *compiled = false;
  if (EntryPointer entry = fetch(recipe)) return entry;
  if (policy_ == JitPolicy::never) return refused(recipe);
  if (policy_ == JitPolicy::warn && log_)
    log_(LogLevel::warn, fmt::format("{} is not in the cache; compiling it now", recipe.label));

  std::string farm_problem;
  if (farm_ != nullptr)
    if (EntryPointer entry = ask_farm(recipe, farm_problem)) return entry;

  const Result<std::string> identity = compiler_.identity();
  if (!identity.ok()) {
    Error error = identity.error();
    if (!farm_problem.empty()) error.found += fmt::format("; and the farm: {}", farm_problem);
    error.help += fmt::format("{}or make {} beforehand with chord-prewarm where NVRTC is installed",
                              error.help.empty() ? "" : "; ", recipe.label);
    return error;
  }
  const CacheKey key = key_of(recipe, *identity);
  CHORD_TRY(EntryPointer entry, cache_.get_or_make(key, [&]() -> Result<cache::Entry> {
    if (compiled != nullptr) *compiled = true;
    return compile(recipe, key);
  }));
  cache_.record_compiler(*identity);
  return entry;
}

EntryPointer CubinStore::ask_farm(const Recipe& recipe, std::string& problem) {
  const Result<std::string> identity = farm_->request(recipe);
  if (!identity) {
    problem = identity.error().message();
  } else if (EntryPointer entry = cache_.fetch(key_of(recipe, *identity))) {
    cache_.record_compiler(*identity);
    return entry;
  } else {
    problem = fmt::format("it says that {} is made, but what is there is not believed here",
                          recipe.label);
  }
  if (log_)
    log_(said_farm_problem_.exchange(true) ? LogLevel::debug : LogLevel::warn,
         fmt::format("the compile farm did not help: {}", problem));
  return nullptr;
}

Result<cache::Entry> CubinStore::compile(const Recipe& recipe, const CacheKey& key) {
  CHORD_TRY(CompiledCubin made, compiler_.compile(request_of(recipe)));
  if (log_)
    log_(LogLevel::info,
         fmt::format("compiled {} in {:.0f} ms: {} registers, {} local bytes", recipe.label,
                     made.compile_ms, made.registers, made.local_bytes));
  cache::Entry entry;
  entry.key = key;
  entry.kernel_name = cuda::kEntryName;
  entry.arch = name(recipe.arch);
  entry.compiler = made.compiler;
  entry.compile_ms = made.compile_ms;
  entry.threads = recipe.threads;
  entry.shared_bytes = recipe.shared_bytes;
  entry.registers = made.registers;
  entry.local_bytes = made.local_bytes;
  entry.cluster = 1;
  entry.cubin = std::move(made.cubin);
  return entry;
}

Error CubinStore::refused(const Recipe& recipe) const {
  const std::optional<CacheKey> key = recorded_key(recipe);
  std::string sought;
  if (key) {
    sought = fmt::format(" (key {}", key->name);
    if (const std::optional<cache::NearestEntry> nearest = cache_.nearest(*key))
      sought += fmt::format("; the nearest entry {} differs in {}", nearest->name,
                            fmt::join(nearest->differing_fields, ", "));
    sought += ")";
  }
  return Error{
      ErrorCode::cache_miss, fmt::format("cubin of {}", recipe.label),
      fmt::format("it is not in the cache{} and CHORD_JIT=never forbids a compile", sought),
      "prewarm the deployment with chord-prewarm, or set CHORD_JIT=allow"};
}

}  // namespace chord::cubin
