// Writes the few lines of CUDA that choose the packer's template arguments.
#include "src/weights/pack_source.h"

#include <fmt/format.h>

#include "kernels/pack/chunk.cuh"

namespace chord::weights {
namespace {

const char* spelling(CodeSource source) {
  switch (source) {
    case CodeSource::codes_i32:
      return "codes_i32";
    case CodeSource::codes_u8:
      return "codes_u8";
    case CodeSource::words:
      return "words";
    case CodeSource::words_k_major:
      return "words_k_major";
  }
  return "unknown";
}

const char* spelling(ScaleSource source) {
  return source == ScaleSource::row_major ? "row_major" : "k_major";
}

Status check_pointer(const char* what, const void* pointer, std::uintptr_t alignment) {
  if (pointer == nullptr)
    return Error{ErrorCode::invalid_argument, "pack weights",
                 fmt::format("{} is a null pointer", what),
                 "host memory for the CPU, device memory for the GPU"};
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return {};
  return Error{ErrorCode::invalid_argument, "pack weights",
               fmt::format("{} is at {}, not aligned to {} bytes", what, pointer, alignment),
               "allocate it aligned; sub-views may break alignment"};
}

}  // namespace

std::string pack_kernel_name(CodeSource codes, ScaleSource scales) {
  return fmt::format("pack_{}_{}.cu", spelling(codes), spelling(scales));
}

std::string pack_source(CodeSource codes, ScaleSource scales) {
  return fmt::format(R"(#include "kernels/pack/pack.cuh"

extern "C" __global__ void __launch_bounds__({})
chord_kernel(const __grid_constant__ chord::abi::PackParams p) {{
  chord::device::pack<chord::abi::CodeSource::{}, chord::abi::ScaleSource::{}>(p);
}}
)",
                     kPackThreads, spelling(codes), spelling(scales));
}

unsigned pack_blocks(const PackedShape& shape) {
  return static_cast<unsigned>(
      abi::ceil_div(device::chunk_count(shape.experts, shape.n, shape.k), kPackThreads));
}

abi::PackParams pack_params(const WeightSource& source, const PackedShape& shape, void* weights,
                            void* scales, std::uint64_t* status) {
  abi::PackParams p{};
  p.codes = source.codes;
  p.scales = source.scales;
  p.packed_weights = static_cast<abi::u32*>(weights);
  p.packed_scales = static_cast<abi::u16*>(scales);
  p.status = reinterpret_cast<abi::u64*>(status);
  p.experts = static_cast<abi::i32>(shape.experts);
  p.n = static_cast<abi::i32>(shape.n);
  p.k = static_cast<abi::i32>(shape.k);
  p.code_source = source.code_source;
  p.scale_source = source.scale_source;
  p.row_order = shape.row_order;
  return p;
}

Status check_pack_pointers(const WeightSource& source, const void* weights, const void* scales,
                           const std::uint64_t* status) {
  const bool is_bytes = source.code_source == CodeSource::codes_u8;
  CHORD_TRY(check_pointer("source.codes", source.codes, is_bytes ? 1 : 4));
  CHORD_TRY(check_pointer("source.scales", source.scales, 2));
  CHORD_TRY(check_pointer("weights", weights, 16));
  CHORD_TRY(check_pointer("scales", scales, 16));
  return check_pointer("status", status, 8);
}

}  // namespace chord::weights
