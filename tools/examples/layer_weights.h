// The weights of one layer packed into device memory at load time: expert by expert, one projection
// at a time, so that beside the packed weights no more than one expert's projection lies on the
// GPU. The host holds that much, too; while a tensor-parallel rank reads its columns of down, also
// the whole rows that they are cut from, which are as many times larger as there are ranks.
#pragma once

#include <optional>

#include "src/cuda/memory.h"
#include "tools/bench/rig.h"
#include "tools/examples/layer_source.h"

namespace chord::examples {

struct PackedProjection {
  PackedShape shape;
  cuda::DeviceBuffer codes, scales;

  static Result<PackedProjection> allocate(const PackedShape& shape);
  PackedWeight weight() const { return {codes.pointer(), scales.pointer(), shape}; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(codes.bytes() + scales.bytes()); }
};

struct LoadFacts {
  std::int64_t packed_bytes = 0;        // what an engine keeps: gate/up in one row order, and down
  std::int64_t second_order_bytes = 0;  // gate/up again in the other one, where both are timed
  std::int64_t staging_bytes = 0;  // checkpoint words and scales of one projection of one expert
  std::int64_t measured_peak_bytes = 0;  // what the driver says was taken beside packed weights
  double seconds = 0;

  std::int64_t peak_bytes() const { return packed_bytes + staging_bytes; }  // of an engine
};

// Which forms of gate/up are wanted. An engine keeps one of them.
struct WeightForms {
  bool plain = true;   // for a SwiGLU of its own
  bool fused = false;  // rows of gate and up interleaved, for Epilogue::swiglu
};

struct LayerWeights {
  std::optional<PackedProjection> gate_up, gate_up_fused;
  PackedProjection down;
  LoadFacts facts;

  static Result<LayerWeights> load(bench::Rig& rig, const LayerSource& source,
                                   const WeightForms& forms);
};

}  // namespace chord::examples
