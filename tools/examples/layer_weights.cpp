// Loading: read one projection of one expert, upload it, pack it, wait, next.
#include "tools/examples/layer_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace chord::examples {
namespace {

Result<std::int64_t> free_bytes(const bench::Rig& rig) {
  std::size_t free = 0, total = 0;
  CHORD_TRY(cuda::check(rig.driver->mem_get_info(&free, &total), "ask for free device memory"));
  return static_cast<std::int64_t>(free);
}

class Loader {
 public:
  explicit Loader(bench::Rig& rig) : rig_(rig) {}

  Status allocate(const LayerShape& shape) {
    const std::int64_t values =
        std::max(2 * shape.intermediate * shape.hidden, shape.hidden * shape.intermediate);
    CHORD_TRY(words_, cuda::DeviceBuffer::allocate(static_cast<std::size_t>(values / 2)));
    CHORD_TRY(scales_, cuda::DeviceBuffer::allocate(static_cast<std::size_t>(values / 16)));
    CHORD_TRY(status_, cuda::DeviceBuffer::allocate(sizeof(std::uint64_t)));
    return {};
  }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(words_.bytes() + scales_.bytes() + status_.bytes());
  }

  Status upload(const QuantizedMatrix& matrix) {
    CHORD_TRY(words_.upload(matrix.words.data(), matrix.words.size() * sizeof(std::uint32_t)));
    return scales_.upload(matrix.scales.data(), matrix.scales.size() * sizeof(std::uint16_t));
  }

  // The uploaded matrix into its place among the packed experts; returns when it is there, because
  // the next upload overwrites what the packer reads.
  Status pack(std::int64_t slot, PackedProjection& packed) {
    PackedShape one = packed.shape;
    one.experts = 1;
    char* const codes = static_cast<char*>(packed.codes.pointer()) + slot * one.weight_bytes();
    char* const scales = static_cast<char*>(packed.scales.pointer()) + slot * one.scale_bytes();
    const WeightSource source{words_.pointer(), CodeSource::words,
                              static_cast<const std::uint16_t*>(scales_.pointer()),
                              ScaleSource::row_major};
    CHORD_TRY(rig_.engine.pack(source, one, codes, scales,
                               static_cast<std::uint64_t*>(status_.pointer()),
                               rig_.stream.handle()));
    CHORD_TRY(rig_.stream.synchronize());
    std::uint64_t found = 0;
    CHORD_TRY(status_.download(&found, sizeof found));
    Status packable = check_pack_status(found, one);
    if (!packable.ok())
      packable.error().asked = fmt::format("expert slot {}: {}", slot, packable.error().asked);
    return packable;
  }

 private:
  bench::Rig& rig_;
  cuda::DeviceBuffer words_, scales_, status_;
};

}  // namespace

Result<PackedProjection> PackedProjection::allocate(const PackedShape& shape) {
  CHORD_TRY(check_shape(shape));
  PackedProjection packed;
  packed.shape = shape;
  CHORD_TRY(packed.codes,
            cuda::DeviceBuffer::allocate(static_cast<std::size_t>(shape.weight_bytes())));
  CHORD_TRY(packed.scales,
            cuda::DeviceBuffer::allocate(static_cast<std::size_t>(shape.scale_bytes())));
  return packed;
}

Result<LayerWeights> LayerWeights::load(bench::Rig& rig, const LayerSource& source,
                                        const WeightForms& forms) {
  const auto start = std::chrono::steady_clock::now();
  const LayerShape& shape = source.shape();
  PackedShape gate_up{.experts = shape.slots(), .n = 2 * shape.intermediate, .k = shape.hidden};
  LayerWeights weights;
  if (forms.plain) {
    CHORD_TRY(weights.gate_up, PackedProjection::allocate(gate_up));
  }
  gate_up.row_order = RowOrder::gate_up;
  if (forms.fused) {
    CHORD_TRY(weights.gate_up_fused, PackedProjection::allocate(gate_up));
  }
  CHORD_TRY(weights.down,
            PackedProjection::allocate(
                {.experts = shape.slots(), .n = shape.hidden, .k = shape.intermediate}));

  CHORD_TRY(const std::int64_t before, free_bytes(rig));
  std::int64_t least = before;
  Loader loader(rig);
  CHORD_TRY(loader.allocate(shape));
  for (std::int64_t slot = 0; slot < shape.slots(); ++slot) {
    {
      CHORD_TRY(const QuantizedMatrix matrix, source.gate_up(slot));
      CHORD_TRY(loader.upload(matrix));
    }
    if (weights.gate_up) CHORD_TRY(loader.pack(slot, *weights.gate_up));
    if (weights.gate_up_fused) CHORD_TRY(loader.pack(slot, *weights.gate_up_fused));
    CHORD_TRY(const QuantizedMatrix matrix, source.down(slot));
    CHORD_TRY(loader.upload(matrix));
    CHORD_TRY(loader.pack(slot, weights.down));
    CHORD_TRY(const std::int64_t now, free_bytes(rig));
    least = std::min(least, now);
  }
  weights.facts.staging_bytes = loader.bytes();
  weights.facts.measured_peak_bytes = before - least;
  weights.facts.packed_bytes = weights.down.bytes();
  const std::int64_t gate_up_bytes = gate_up.weight_bytes() + gate_up.scale_bytes();
  if (forms.plain || forms.fused) weights.facts.packed_bytes += gate_up_bytes;
  if (forms.plain && forms.fused) weights.facts.second_order_bytes = gate_up_bytes;
  weights.facts.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return weights;
}

}  // namespace chord::examples
