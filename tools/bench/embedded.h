// Text files that travel inside the binaries: the helper kernels and the case files, so that a
// binary carried to another machine needs nothing beside it.
#pragma once

#include <cstddef>

namespace chord::bench {

struct EmbeddedFile {
  const char* name;  // "tools/bench/device/reference.cu", "tools/cases/published.json"
  const char* text;
  std::size_t size;
};

extern const EmbeddedFile embedded_files[];
extern const std::size_t embedded_file_count;

}  // namespace chord::bench
