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
  return p;
}

Status check_pack_pointers(const WeightSource& source, const void* weights, const void* scales) {
  const auto refuse = [](const char* found, const char* help) {
    return Error{ErrorCode::invalid_argument, "pack weights", found, help};
  };
  if (source.codes == nullptr || source.scales == nullptr)
    return refuse("no codes or no scales to read", "set WeightSource::codes and scales");
  if (weights == nullptr || scales == nullptr)
    return refuse("no memory to pack into", "allocate weight_bytes() and scale_bytes()");
  const auto address =
      reinterpret_cast<std::uintptr_t>(weights) | reinterpret_cast<std::uintptr_t>(scales);
  if (address % 16 != 0)
    return refuse("the memory to pack into is not 16-byte aligned", "align it");
  return {};
}

}  // namespace chord::weights
