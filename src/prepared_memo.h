// The process memo: has this engine done this before. A hit is one hash look-up in an immutable
// map, without a lock; a new entry copies the map and publishes the copy. Superseded maps live as
// long as the memo, since a reader may still hold one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/prepared_kernel.h"

namespace chord {

struct MemoKey {
  GemmDescriptor descriptor;
  const void* context = nullptr;  // of CUDA: a function belongs to one

  bool operator==(const MemoKey&) const = default;
};

struct MemoHash {
  std::size_t operator()(const MemoKey& key) const {
    const GemmDescriptor& d = key.descriptor;
    std::size_t hash = std::hash<std::string>{}(d.profile);
    for (const std::int64_t value :
         {static_cast<std::int64_t>(d.family), static_cast<std::int64_t>(d.arch),
          static_cast<std::int64_t>(d.num_sms), d.n, d.k, d.experts, d.rows, d.max_m, d.expected_m,
          static_cast<std::int64_t>(d.block_m.value_or(0)),
          static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(key.context))})
      hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ull + (hash >> 29);
    return hash;
  }
};

class PreparedMemo {
 public:
  using Value = std::shared_ptr<const PreparedKernel::State>;

  PreparedMemo() : current_(new Map) { maps_.emplace_back(current_.load()); }

  Value find(const MemoKey& key) const {
    const Map& map = *current_.load(std::memory_order_acquire);
    const auto at = map.find(key);
    return at == map.end() ? nullptr : at->second;
  }

  void insert(const MemoKey& key, Value value) {
    const std::lock_guard lock(mutex_);
    auto next = std::make_unique<Map>(*current_.load());
    (*next)[key] = std::move(value);
    current_.store(next.get(), std::memory_order_release);
    maps_.push_back(std::move(next));
  }

 private:
  using Map = std::unordered_map<MemoKey, Value, MemoHash>;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Map>> maps_;
  std::atomic<Map*> current_;
};

}  // namespace chord
