// The GPU packer's entry text, parameters and launch geometry. Must not know who compiles or
// launches it.
#pragma once

#include <string>

#include "chord/weights.h"

namespace chord::weights {

// "pack_words_row_major.cu"
std::string pack_kernel_name(CodeSource codes, ScaleSource scales);

// CUDA source that defines chord_kernel(PackParams).
std::string pack_source(CodeSource codes, ScaleSource scales);

inline constexpr unsigned kPackThreads = 256;

// Blocks of kPackThreads in a one-dimensional grid. `shape` has passed check_shape.
unsigned pack_blocks(const PackedShape& shape);

// `status` is set to kPackStatusClean by the caller before the launch.
abi::PackParams pack_params(const WeightSource& source, const PackedShape& shape, void* weights,
                            void* scales, std::uint64_t* status);

// Refuses, by name, a null pointer and what is not aligned: outputs to 16 bytes, codes to 4 (not
// codes_u8), scales to 2, the status word to 8.
Status check_pack_pointers(const WeightSource& source, const void* weights, const void* scales,
                           const std::uint64_t* status);

}  // namespace chord::weights
