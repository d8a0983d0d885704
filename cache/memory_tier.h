// The entries that this process has read or made, parsed: a hit is one look-up and one comparison
// of the key's text. Holds objects instead of bytes, hence not a CacheTier. Bounded; the entry that
// was asked for longest ago goes first. Safe from several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "cache/entry.h"

namespace chord::cache {

class MemoryTier {
 public:
  static constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{256} << 20;

  explicit MemoryTier(std::uint64_t max_bytes = kDefaultMaxBytes) : max_bytes_(max_bytes) {}

  std::shared_ptr<const Entry> find(const CacheKey& key) const;
  void insert(const CacheKey& key, std::shared_ptr<const Entry> entry);

 private:
  struct Slot {
    std::shared_ptr<const Entry> entry;
    std::uint64_t bytes = 0;
    mutable std::atomic<std::uint64_t> last_use{0};
  };

  void drop_oldest_but(const std::string& name);

  std::uint64_t max_bytes_;
  mutable std::atomic<std::uint64_t> uses_{0};
  mutable std::shared_mutex mutex_;
  std::uint64_t bytes_ = 0;
  // By name: hashing 32 digits costs less than hashing a key's text, which holds a source.
  std::unordered_map<std::string, Slot> slots_;
};

}  // namespace chord::cache
