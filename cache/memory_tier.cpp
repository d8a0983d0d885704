// See memory_tier.h.
#include "cache/memory_tier.h"

#include <mutex>
#include <utility>

namespace chord::cache {

std::shared_ptr<const Entry> MemoryTier::find(const CacheKey& key) const {
  std::shared_lock lock(mutex_);
  const auto found = slots_.find(key.name);
  if (found == slots_.end() || found->second.entry->key.text != key.text) return nullptr;
  found->second.last_use.store(++uses_, std::memory_order_relaxed);
  return found->second.entry;
}

void MemoryTier::insert(const CacheKey& key, std::shared_ptr<const Entry> entry) {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[key.name];
  bytes_ -= slot.bytes;
  slot.bytes = entry->cubin.size() + entry->key.text.size();
  slot.entry = std::move(entry);
  slot.last_use = ++uses_;
  bytes_ += slot.bytes;
  while (bytes_ > max_bytes_ && slots_.size() > 1) drop_oldest_but(key.name);
}

// A scan: it happens once per compile at most, over a few hundred entries.
void MemoryTier::drop_oldest_but(const std::string& name) {
  auto oldest = slots_.end();
  for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
    if (slot->first == name) continue;
    if (oldest == slots_.end() || slot->second.last_use < oldest->second.last_use) oldest = slot;
  }
  bytes_ -= oldest->second.bytes;
  slots_.erase(oldest);
}

}  // namespace chord::cache
