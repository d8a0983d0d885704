// The process memo: has this engine done this before. A hit is one hash look-up without a lock:
// entries are only ever added, at the front of the list of their bucket.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "src/cuda/device.h"
#include "src/prepared_kernel.h"

namespace chord {

inline std::size_t memo_hash(const GemmDescriptor& d, cuda::ContextId context) {
  std::size_t hash = std::hash<std::string_view>{}(d.profile);
  for (const std::int64_t value :
       {static_cast<std::int64_t>(d.family), static_cast<std::int64_t>(d.arch),
        static_cast<std::int64_t>(d.num_sms), d.n, d.k, d.experts, d.rows, d.max_m, d.expected_m,
        static_cast<std::int64_t>(d.block_m.value_or(0)), static_cast<std::int64_t>(d.epilogue),
        static_cast<std::int64_t>(context)})
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ull + (hash >> 29);
  return hash;
}

class PreparedMemo {
 public:
  using Value = std::shared_ptr<const PreparedKernel::State>;

  // Copies nothing of the descriptor: a launch may ask.
  Value find(const GemmDescriptor& descriptor, cuda::ContextId context) const {
    const Node* node = heads_[head_of(descriptor, context)].load(std::memory_order_acquire);
    while (node != nullptr && !(node->context == context && node->descriptor == descriptor))
      node = node->next;
    return node == nullptr ? nullptr : node->value;
  }

  // The first value of a key stays.
  void insert(const GemmDescriptor& descriptor, cuda::ContextId context, Value value) {
    const std::lock_guard lock(mutex_);
    if (find(descriptor, context)) return;
    std::atomic<const Node*>& head = heads_[head_of(descriptor, context)];
    nodes_.push_back({descriptor, context, std::move(value), head.load(std::memory_order_relaxed)});
    head.store(&nodes_.back(), std::memory_order_release);
  }

 private:
  struct Node {
    GemmDescriptor descriptor;
    cuda::ContextId context;  // a function belongs to one
    Value value;
    const Node* next;
  };
  static constexpr std::size_t kHeads = 1024;  // an engine has some descriptors per row count

  static std::size_t head_of(const GemmDescriptor& descriptor, cuda::ContextId context) {
    return memo_hash(descriptor, context) % kHeads;
  }

  std::mutex mutex_;
  std::deque<Node> nodes_;
  std::array<std::atomic<const Node*>, kHeads> heads_{};
};

}  // namespace chord
