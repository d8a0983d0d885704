// NVRTC, opened at run time: where it is looked for, its entry points, which version is needed for
// which architecture. Several libraries may be open in one process. Must not know what is compiled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chord/descriptor.h"

namespace chord::cuda {

using nvrtcResult = int;
using nvrtcProgram = struct NvrtcProgramHandle*;

inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_INVALID_OPTION = 5;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

// A plain table, so that tests can change an entry or the version.
struct NvrtcApi {
  const char* (*get_error_string)(nvrtcResult result) = nullptr;
  nvrtcResult (*version)(int* major, int* minor) = nullptr;
  nvrtcResult (*create_program)(nvrtcProgram* program, const char* source, const char* name,
                                int num_headers, const char* const* headers,
                                const char* const* include_names) = nullptr;
  nvrtcResult (*destroy_program)(nvrtcProgram* program) = nullptr;
  nvrtcResult (*compile_program)(nvrtcProgram program, int num_options,
                                 const char* const* options) = nullptr;
  nvrtcResult (*get_program_log_size)(nvrtcProgram program, std::size_t* bytes) = nullptr;
  nvrtcResult (*get_program_log)(nvrtcProgram program, char* log) = nullptr;
  nvrtcResult (*get_cubin_size)(nvrtcProgram program, std::size_t* bytes) = nullptr;
  nvrtcResult (*get_cubin)(nvrtcProgram program, char* cubin) = nullptr;
  nvrtcResult (*get_ptx_size)(nvrtcProgram program, std::size_t* bytes) = nullptr;
  nvrtcResult (*get_ptx)(nvrtcProgram program, char* ptx) = nullptr;

  int major = 0, minor = 0;  // of the library
  std::string path;          // the file that was loaded
};

// The files and names that are tried in this order. `library` (an option of the engine) may be a
// file, a name for the loader, or a folder: one that holds NVRTC, a toolkit, or the site-packages
// or nvidia folder of PyPI wheels. Without it: the loader's search and /usr/local/cuda*, newest
// version first.
std::vector<std::string> nvrtc_candidates(const std::optional<std::string>& library);

// Opens the first that loads. The error names every library that was tried and why it did not load.
Result<NvrtcApi> open_nvrtc(const std::optional<std::string>& library);

// Whether this NVRTC can compile for the architecture; the error names the library's path, the
// version found and the version needed. Asks nothing of the compiler.
Status check_nvrtc_version(const NvrtcApi& api, Architecture arch);

}  // namespace chord::cuda
