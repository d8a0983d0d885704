// Arguments of one launch. All pointers are device memory, all tensors contiguous row-major.
// out[r, n] = bf16( sum_k x[src(r), k] * w[expert(r), n, k] ), accumulated in FP32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "chord/abi/params.h"
#include "chord/weights.h"

namespace chord {

// vLLM's moe_align_block_size contract. Per block of block_m: valid ids (0 <= id < num_ids) as a
// prefix, then sentinels >= num_ids. A block whose expert is outside [0, experts) is skipped. What
// the buffers hold behind the padded count may be read, and is not used.
struct IndexedRouting {
  const std::int32_t* sorted_ids = nullptr;         // 16-byte aligned
  const std::int32_t* expert_ids = nullptr;         // capacity / block_m, one per block
  const std::int32_t* num_tokens_padded = nullptr;  // one value on the device
  std::int64_t capacity = 0;                        // ids that sorted_ids can hold
  std::int64_t num_ids = 0;                         // T * top_k; activations have T rows
  int top_k = 1;                                    // source row = id / top_k; 1 for down
};

struct ContiguousRouting {
  abi::ContiguousSpelling spelling = abi::ContiguousSpelling::m_indices;
  const void* groups = nullptr;  // m_indices [rows] or expert_offsets [experts + 1]
  std::int64_t rows = 0;         // rows of activations and output
};

struct MaskedRouting {
  const std::int32_t* masked_m = nullptr;  // [experts], clamped to [0, max_m]
  std::int64_t max_m = 0;
};

struct GemmArguments {
  const void* activations = nullptr;  // BF16, 16-byte aligned
  void* output = nullptr;             // BF16, 16-byte aligned
  PackedWeight weight;
  // Epilogue::weighted: device FP32, one per output row: num_ids (indexed), rows (contiguous),
  // experts * max_m (masked).
  const float* row_weights = nullptr;
  std::variant<IndexedRouting, ContiguousRouting, MaskedRouting> routing;
  void* workspace = nullptr;  // PreparedKernel::workspace_bytes, 256-byte aligned; its first
  std::size_t workspace_bytes =
      0;                 // PreparedKernel::workspace_flag_bytes are zeroed once by the caller
  bool checked = false;  // synchronise, read the routing back, refuse what is wrong
  bool programmatic_dependent_launch = false;
};

}  // namespace chord
