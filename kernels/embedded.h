// The device text, embedded at build time: every .cuh of kernels/ and every header of
// include/chord/abi/, under the names by which NVRTC includes them.
#pragma once

#include <cstddef>

namespace chord::kernels {

struct EmbeddedFile {
  const char* name;  // "kernels/moe_gemm/moe_gemm.cuh", "chord/abi/schedule.h"
  const char* text;
  std::size_t size;
};

extern const EmbeddedFile embedded_files[];
extern const std::size_t embedded_file_count;

}  // namespace chord::kernels
