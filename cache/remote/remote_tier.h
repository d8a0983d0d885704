// A remote back-end as a tier of the cache: entries go over the wire in one zstd frame each. The
// signature that a reader asks for is inside the entry; nothing else is believed of what arrives.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cache/remote/backend.h"
#include "chord/cache_tier.h"

namespace chord::cache {

// What one unpacked entry may have: a wrong or hostile frame must not fill the memory.
inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{64} << 20;

class RemoteTier final : public CacheTier {
 public:
  RemoteTier(std::shared_ptr<RemoteBackend> backend, bool is_writable)
      : backend_(std::move(backend)), is_writable_(is_writable) {}

  std::string name() const override { return backend_->name(); }
  bool is_writable() const override { return is_writable_; }
  TierAnswer get(const CacheKey& key) override;
  TierAnswer probe(const CacheKey& key) override { return backend_->head(key); }
  // Refuses an entry without a signature: nobody would load it.
  Status put(const CacheKey& key, std::string_view bytes) override;
  Status remove(const CacheKey& key) override;
  void set_aside(const CacheKey& key, std::string_view reason) override;

 private:
  std::shared_ptr<RemoteBackend> backend_;
  bool is_writable_;
};

}  // namespace chord::cache
