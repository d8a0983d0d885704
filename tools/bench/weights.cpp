// Filling and packing on the GPU.
#include "tools/bench/weights.h"

#include "tools/bench/device/params.h"

namespace chord::bench {
namespace {

Status fill(Rig& rig, Weights& weights, const WeightOptions& options) {
  FillCodesParams codes{};
  codes.words = static_cast<u32*>(weights.words.pointer());
  codes.count = static_cast<i64>(weights.words.bytes() / sizeof(u32));
  codes.seed = options.seed;
  codes.fifteen_codes = options.fifteen_codes ? 1 : 0;
  const cuda::CUstream stream = rig.stream.handle();
  CHORD_TRY(rig.code->launch_over(Helper::fill_codes, codes.count, codes, stream));

  FillScalesParams scales{};
  scales.scales = static_cast<u16*>(weights.scales.pointer());
  scales.count = static_cast<i64>(weights.scales.bytes() / sizeof(u16));
  scales.seed = options.seed + 1000003;
  scales.low = 0.005f;
  scales.high = 0.02f;
  scales.is_wide = options.scales == ScaleKind::wide ? 1 : 0;
  scales.min_exponent = -20;
  scales.max_exponent = 7;
  CHORD_TRY(rig.code->launch_over(Helper::fill_scales, scales.count, scales, stream));
  return rig.stream.synchronize();
}

}  // namespace

Result<Weights> Weights::make(Rig& rig, const PackedShape& shape, const WeightOptions& options) {
  CHORD_TRY(check_shape(shape));
  Weights weights;
  weights.shape = shape;
  const auto word_bytes = static_cast<std::size_t>(shape.weight_bytes());
  const auto scale_bytes = static_cast<std::size_t>(shape.scale_bytes());
  CHORD_TRY(weights.words, cuda::DeviceBuffer::allocate(word_bytes));
  CHORD_TRY(weights.scales, cuda::DeviceBuffer::allocate(scale_bytes));
  CHORD_TRY(weights.packed_words, cuda::DeviceBuffer::allocate(word_bytes));
  CHORD_TRY(weights.packed_scales, cuda::DeviceBuffer::allocate(scale_bytes));
  CHORD_TRY(weights.status, cuda::DeviceBuffer::allocate(sizeof(std::uint64_t)));
  CHORD_TRY(fill(rig, weights, options));
  CHORD_TRY(weights.pack(rig));
  return weights;
}

Status Weights::pack(Rig& rig) {
  // Copies of the caller run on another stream, and may still be under way.
  CHORD_TRY(cuda::check(rig.driver->ctx_synchronize(), "wait for the GPU"));
  const WeightSource source{words.pointer(), CodeSource::words,
                            static_cast<const std::uint16_t*>(scales.pointer()),
                            ScaleSource::row_major};
  CHORD_TRY(rig.engine.pack(source, shape, packed_words.pointer(), packed_scales.pointer(),
                            static_cast<std::uint64_t*>(status.pointer()), rig.stream.handle()));
  CHORD_TRY(rig.stream.synchronize());
  std::uint64_t found = 0;
  CHORD_TRY(status.download(&found, sizeof found));
  return check_pack_status(found, shape);
}

PackedWeight Weights::packed(std::int64_t experts) const {
  PackedWeight weight{packed_words.pointer(), packed_scales.pointer(), shape};
  if (experts != 0) weight.shape.experts = experts;
  return weight;
}

}  // namespace chord::bench
