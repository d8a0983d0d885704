// The order of asking: cache under recorded identities, policy, compiler. See the header.
#include "src/cubin/cubin_store.h"

#include <fmt/format.h>

#include "src/cuda/entry.h"

namespace chord::cubin {

EntryPointer CubinStore::find(const Recipe& recipe) const {
  for (const std::string& identity : cache_.compiler_identities())
    if (EntryPointer entry = cache_.find(key_of(recipe, identity))) return entry;
  return nullptr;
}

std::optional<CacheKey> CubinStore::recorded_key(const Recipe& recipe) const {
  const std::vector<std::string> identities = cache_.compiler_identities();
  if (identities.empty()) return std::nullopt;
  return key_of(recipe, identities.front());
}

Result<EntryPointer> CubinStore::obtain(const Recipe& recipe, bool* compiled) {
  if (compiled != nullptr) *compiled = false;
  if (EntryPointer entry = find(recipe)) return entry;
  if (policy_ == JitPolicy::never) return refused(recipe);
  if (policy_ == JitPolicy::warn && log_)
    log_(LogLevel::warn, fmt::format("{} is not in the cache; compiling it now", recipe.label));

  const Result<std::string> identity = compiler_.identity();
  if (!identity.ok()) {
    Error error = identity.error();
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
