// Packed INT4 weights: one layout for decode and prefill, mma and wgmma (chord/abi/layout.h).
//
//   const PackedShape shape{.experts = 48, .n = 4096, .k = 7168};
//   std::vector<std::uint32_t> codes(shape.weight_bytes() / 4);
//   std::vector<std::uint16_t> scales(shape.scale_bytes() / 2);
//   auto packed = pack_weights({.codes = words, .code_source = CodeSource::words, .scales = bf16},
//   shape,
//                              codes.data(), scales.data());
#pragma once

#include <cstdint>

#include "chord/abi/layout.h"
#include "chord/abi/params.h"
#include "chord/export.h"
#include "chord/status.h"

namespace chord {

using CodeSource = abi::CodeSource;
using ScaleSource = abi::ScaleSource;
using RowOrder = abi::RowOrder;

// The tag of a packed weight. A kernel refuses another layout version or shape before launch.
struct PackedShape {
  std::int64_t experts = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int layout_version = abi::kLayoutVersion;
  RowOrder row_order =
      RowOrder::plain;  // gate_up: for kernels with Epilogue::swiglu, and only them

  std::int64_t weight_bytes() const { return abi::packed_weight_bytes(experts, n, k); }
  std::int64_t scale_bytes() const { return abi::packed_scale_bytes(experts, n, k); }
  bool operator==(const PackedShape&) const = default;
};

// Refuses N or K that is not a multiple of 64, and experts < 1, with the numbers.
CHORD_API Status check_shape(const PackedShape& shape);

// Checkpoint tensors, in host memory (pack_weights) or device memory (Engine::pack).
struct WeightSource {
  // As code_source says; unsigned INT4, value = code - 8. 4-byte aligned, but for codes_u8.
  const void* codes = nullptr;
  CodeSource code_source = CodeSource::words;
  const std::uint16_t* scales = nullptr;  // BF16
  ScaleSource scale_source = ScaleSource::row_major;
};

// A packed weight in device memory.
struct PackedWeight {
  const void* codes = nullptr;   // shape.weight_bytes(), 16-byte aligned
  const void* scales = nullptr;  // shape.scale_bytes(), 16-byte aligned
  PackedShape shape;
};

// Packs on the CPU. Refuses codes above 15 and scales that are not packable (not finite, |s| >=
// 2^9, or non-zero below 2^-112), naming expert, row, group and value; the outputs are then
// unspecified.
CHORD_API Status pack_weights(const WeightSource& source, const PackedShape& shape,
                              std::uint32_t* weights, std::uint16_t* scales);

// Back to codes [E, N, K] (one byte each) and BF16 scales [E, N, K/32].
CHORD_API Status unpack_weights(const std::uint32_t* weights, const std::uint16_t* scales,
                                const PackedShape& shape, std::uint8_t* codes,
                                std::uint16_t* unpacked_scales);

// The error that a status word of the GPU packer stands for; success for kPackStatusClean.
CHORD_API Status check_pack_status(std::uint64_t status, const PackedShape& shape);

}  // namespace chord
