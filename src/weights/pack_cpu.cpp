// Packing and unpacking on the CPU, and what is refused. The packer is a loop over the chunks of
// kernels/pack/chunk.cuh, which is also what the threads of the GPU packer run: one text, the same
// bytes, the same first offender.
#include <fmt/format.h>

#include <bit>

#include "chord/abi/problem.h"
#include "chord/weights.h"
#include "kernels/pack/chunk.cuh"
#include "src/weights/pack_source.h"

namespace chord {
namespace {

// 2^43 weights are 4 TiB packed: more than any device holds, and every index of the packers, a
// status word and a grid of 2^30 blocks still has room.
constexpr std::int64_t kMostWeights = std::int64_t{1} << 43;

std::string shape_text(const PackedShape& shape) {
  return fmt::format("a packed weight of {} experts, N {}, K {}", shape.experts, shape.n, shape.k);
}

float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <CodeSource Codes, ScaleSource Scales>
std::uint64_t pack_all(const abi::PackParams& p) {
  abi::u64 status = abi::kPackStatusClean;
  auto* chunks = reinterpret_cast<device::Chunk*>(p.packed_weights);
  const std::int64_t count = device::chunk_count(p.experts, p.n, p.k);
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const device::ChunkPlace at = device::chunk_place(chunk, p.n, p.k);
    chunks[chunk] = device::pack_codes<Codes>(p, at, status);
    p.packed_scales[chunk] = device::pack_scale<Scales>(p, at, status);
  }
  return status;
}

using Packer = std::uint64_t (*)(const abi::PackParams&);

template <CodeSource Codes>
Packer packer_of(ScaleSource scales) {
  switch (scales) {
    case ScaleSource::row_major:
      return pack_all<Codes, ScaleSource::row_major>;
    case ScaleSource::k_major:
      return pack_all<Codes, ScaleSource::k_major>;
  }
  return nullptr;
}

// Null for values that are none of the enumerators.
Packer packer_of(CodeSource codes, ScaleSource scales) {
  switch (codes) {
    case CodeSource::codes_i32:
      return packer_of<CodeSource::codes_i32>(scales);
    case CodeSource::codes_u8:
      return packer_of<CodeSource::codes_u8>(scales);
    case CodeSource::words:
      return packer_of<CodeSource::words>(scales);
    case CodeSource::words_k_major:
      return packer_of<CodeSource::words_k_major>(scales);
  }
  return nullptr;
}

Error refused_scale(std::uint64_t status, const PackedShape& shape) {
  const std::int64_t groups = shape.k / abi::kGroupSize;
  const std::int64_t index = abi::pack_status_index(status);
  const std::uint16_t bits = abi::pack_status_bits(status);
  return Error{ErrorCode::invalid_argument,
               fmt::format("pack the scale of expert {}, row {}, group {}",
                           index / groups / shape.n, index / groups % shape.n, index % groups),
               fmt::format("it is {:g} (BF16 0x{:04x})", bf16_value(bits), bits),
               "a scale must be zero, or finite with 2^-112 <= |scale| < 2^9"};
}

Error refused_code(std::uint64_t status, const PackedShape& shape) {
  const std::int64_t index = abi::pack_code_status_index(status);
  const unsigned code = abi::pack_status_bits(status);
  return Error{ErrorCode::invalid_argument,
               fmt::format("pack the code of expert {}, row {}, column {} (group {})",
                           index / shape.k / shape.n, index / shape.k % shape.n, index % shape.k,
                           index % shape.k / abi::kGroupSize),
               code < 0xffff ? fmt::format("it is {}", code)
                             : std::string("it is negative, or 65535 or more"),
               "codes are unsigned INT4, 0 to 15, with value code - 8"};
}

}  // namespace

Status check_shape(const PackedShape& shape) {
  const auto refuse = [&](std::string found, std::string help) {
    return Error{ErrorCode::invalid_argument, shape_text(shape), std::move(found), std::move(help)};
  };
  if (shape.layout_version != abi::kLayoutVersion)
    return refuse(fmt::format("its layout has version {}, this library has {}",
                              shape.layout_version, abi::kLayoutVersion),
                  "pack the checkpoint again with this library");
  if (shape.row_order != abi::RowOrder::plain && shape.row_order != abi::RowOrder::gate_up)
    return refuse(fmt::format("row order {}", static_cast<int>(shape.row_order)),
                  "plain or gate_up");
  if (shape.experts < 1 || shape.experts > 0x7fffffff)
    return refuse(fmt::format("experts is {}", shape.experts), "1 to 2^31 - 1");
  if (!abi::is_legal_shape(shape.n, shape.k))
    return refuse(fmt::format("N % 64 is {}, K % 64 is {}", shape.n % abi::kColumnGranularity,
                              shape.k % abi::kDepthGranularity),
                  "N and K must be positive multiples of 64, below 2^31");
  if (shape.experts > kMostWeights / shape.k / shape.n)
    return refuse("more than 2^43 weights", "shard it");
  return {};
}

Status check_pack_status(std::uint64_t status, const PackedShape& shape) {
  if (status == abi::kPackStatusClean) return {};
  CHORD_TRY(check_shape(shape));
  if (abi::is_pack_code_status(status)) return refused_code(status, shape);
  return refused_scale(status, shape);
}

Status pack_weights(const WeightSource& source, const PackedShape& shape, std::uint32_t* weights,
                    std::uint16_t* scales) {
  CHORD_TRY(check_shape(shape));
  std::uint64_t unused = 0;
  CHORD_TRY(weights::check_pack_pointers(source, weights, scales, &unused));
  const Packer pack = packer_of(source.code_source, source.scale_source);
  if (pack == nullptr)
    return Error{
        ErrorCode::invalid_argument, "pack weights",
        fmt::format("code source {}, scale source {}", static_cast<int>(source.code_source),
                    static_cast<int>(source.scale_source)),
        "use the enumerators of CodeSource and ScaleSource"};
  return check_pack_status(pack(weights::pack_params(source, shape, weights, scales, &unused)),
                           shape);
}

Status unpack_weights(const std::uint32_t* weights, const std::uint16_t* scales,
                      const PackedShape& shape, std::uint8_t* codes,
                      std::uint16_t* unpacked_scales) {
  CHORD_TRY(check_shape(shape));
  if (weights == nullptr || scales == nullptr || codes == nullptr || unpacked_scales == nullptr)
    return Error{ErrorCode::invalid_argument, "unpack weights", "a null pointer", ""};
  const std::int64_t groups = shape.k / abi::kGroupSize;
  for (std::int64_t chunk = 0; chunk < device::chunk_count(shape.experts, shape.n, shape.k);
       ++chunk) {
    const device::ChunkPlace at = device::chunk_place(chunk, shape.n, shape.k);
    const auto row_of = [&](int half) {
      return at.expert * shape.n + device::source_row(shape.row_order, at, half, shape.n);
    };
    for (int step = 0; step < 4; ++step) {
      const std::uint32_t word = weights[chunk * 4 + step];
      for (int reg = 0; reg < 4; ++reg) {
        std::uint8_t* pair = codes + row_of(reg % 2) * shape.k + at.col + 16 * step + 8 * (reg / 2);
        pair[0] = word >> (4 * reg) & 15;
        pair[1] = word >> (16 + 4 * reg) & 15;
      }
    }
    const int half = at.t / 2;
    const std::int64_t group = at.col / abi::kAtomDepth * 2 + at.t % 2;
    unpacked_scales[row_of(half) * groups + group] =
        abi::transform_scale(scales[chunk], -abi::scale_shift(at.row + 8 * half));
  }
  return {};
}

}  // namespace chord
