// See inquiry.h.
#include "src/inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/key.h"

namespace chord {
namespace {

void ask_tiers(cache::TieredCache& cache, const CacheKey& key, Inquiry& inquiry) {
  for (cache::TierReport& report : cache.inquire(key))
    inquiry.tiers.push_back({std::move(report.tier), report.reason, std::move(report.text)});
}

}  // namespace

bool Inquiry::is_there() const {
  return std::any_of(tiers.begin(), tiers.end(),
                     [](const TierStatus& tier) { return tier.reason == MissReason::none; });
}

Result<Inquiry> inquire(const cubin::Recipe& recipe, const cubin::CubinStore& store,
                        cache::TieredCache& cache) {
  Inquiry inquiry;
  inquiry.label = recipe.label;
  std::optional<CacheKey> key = store.recorded_key(recipe);
  // Where entries of several compilers are, the one that would be loaded is the one that counts.
  if (const cubin::EntryPointer entry = store.find(recipe)) key = entry->key;
  if (!key) {
    inquiry.key_missing =
        "the compiler is part of the key, and no cache folder or store has recorded one yet";
    return inquiry;
  }
  inquiry.key = key->name;
  ask_tiers(cache, *key, inquiry);
  if (inquiry.is_there()) return inquiry;
  if (std::optional<cache::NearestEntry> nearest = cache.nearest(*key)) {
    inquiry.nearest = std::move(nearest->name);
    inquiry.differing_fields = std::move(nearest->differing_fields);
  }
  return inquiry;
}

Result<Inquiry> inquire(const std::string& key, cache::TieredCache& cache) {
  if (!cache::is_content_name(key))
    return Error{ErrorCode::invalid_argument, fmt::format("key {}", key.substr(0, 64)),
                 "it is not 32 lower-case hex digits", "chord-cache ls lists the keys"};
  Inquiry inquiry;
  inquiry.key = key;
  ask_tiers(cache, CacheKey{.text = {}, .name = key}, inquiry);
  return inquiry;
}

}  // namespace chord
