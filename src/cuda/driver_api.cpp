// Opens libcuda and fills the table of entry points.
#include "src/cuda/driver_api.h"

#include <fmt/format.h>

#include "src/base/dynamic_library.h"

namespace chord::cuda {
namespace {

constexpr int kOldestDriver = 12000;  // cuLaunchKernelEx and tensor maps
constexpr const char* kHelp =
    "install an NVIDIA driver, or in a container expose the GPU to it (--gpus all); planning, "
    "explaining and compiling need no driver";

Result<base::DynamicLibrary> open_first(const std::vector<std::string>& libraries) {
  std::string tried;
  for (const std::string& name : libraries) {
    auto library = base::DynamicLibrary::open(name);
    if (library.ok()) return library;
    if (!tried.empty()) tried += "; ";
    tried += library.error().found;
  }
  return Error{ErrorCode::unavailable, "open the CUDA driver library", tried, kHelp};
}

Result<DriverApi> fill_table(const base::DynamicLibrary& library) {
  DriverApi api;
  std::string missing;
#define CHORD_DRIVER_RESOLVE(member, symbol, parameters) \
  if (!library.find(symbol, api.member))                 \
    missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  CHORD_DRIVER_ENTRIES(CHORD_DRIVER_RESOLVE)
#undef CHORD_DRIVER_RESOLVE
  api.path = library.path();
  if (!missing.empty())
    return Error{ErrorCode::unavailable, "use the CUDA driver " + api.path, "it lacks " + missing,
                 "a driver of CUDA 12.0 or newer has them"};
  return api;
}

std::string text_of(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  const char* words = nullptr;
  api.get_error_name(result, &name);
  api.get_error_string(result, &words);
  return fmt::format("{} ({}): {}", name != nullptr ? name : "unknown CUDA error", result,
                     words != nullptr ? words : "no description");
}

Result<DriverApi> open_and_initialise() {
  CHORD_TRY(DriverApi api, open_driver({"libcuda.so.1"}));
  if (const CUresult result = api.init(0); result != CUDA_SUCCESS)
    return Error{ErrorCode::unavailable, "initialise the CUDA driver " + api.path,
                 text_of(api, result), kHelp};
  api.driver_get_version(&api.version);
  if (api.version < kOldestDriver)
    return Error{ErrorCode::unavailable, "use the CUDA driver " + api.path,
                 fmt::format("it is of CUDA {}.{}", api.version / 1000, api.version % 1000 / 10),
                 "CUDA 12.0 or newer is needed"};
  return api;
}

const Result<DriverApi>& opened_once() {
  static const Result<DriverApi> api = open_and_initialise();
  return api;
}

}  // namespace

Result<DriverApi> open_driver(const std::vector<std::string>& libraries) {
  CHORD_TRY(const base::DynamicLibrary library, open_first(libraries));
  return fill_table(library);
}

Result<const DriverApi*> driver_api() {
  const Result<DriverApi>& api = opened_once();
  if (!api.ok()) return api.error();
  return &*api;
}

Status check(CUresult result, std::string_view asked) {
  if (result == CUDA_SUCCESS) return {};
  const Result<DriverApi>& api = opened_once();
  return Error{ErrorCode::driver_error, std::string(asked),
               api.ok() ? text_of(*api, result) : fmt::format("CUDA error {}", result), ""};
}

}  // namespace chord::cuda
