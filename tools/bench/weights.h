// A made-up checkpoint layer in device memory, and its packed form. The checkpoint stays: it is
// what the reference reads.
#pragma once

#include "src/cuda/memory.h"
#include "tools/bench/rig.h"

namespace chord::bench {

enum class ScaleKind {
  realistic,  // 0.005 to 0.02, what the Kimi checkpoints hold
  wide,       // either sign, 2^-20 to 2^7
};

struct WeightOptions {
  std::uint64_t seed = 1;
  bool fifteen_codes = true;
  ScaleKind scales = ScaleKind::realistic;
};

struct Weights {
  PackedShape shape;
  cuda::DeviceBuffer words;   // int32 [E, N, K/8]
  cuda::DeviceBuffer scales;  // BF16 [E, N, K/32]
  cuda::DeviceBuffer packed_words;
  cuda::DeviceBuffer packed_scales;
  cuda::DeviceBuffer status;  // of the packer, one word

  // Fills and packs; returns when both are done.
  static Result<Weights> make(Rig& rig, const PackedShape& shape, const WeightOptions& options);

  // Packs words and scales again, into the same addresses, and waits.
  Status pack(Rig& rig);

  // The first `experts` of it; all if 0. Experts lie one after the other in both forms.
  PackedWeight packed(std::int64_t experts = 0) const;
};

}  // namespace chord::bench
