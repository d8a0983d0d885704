// Finds, opens and judges NVRTC.
#include "src/cuda/nvrtc_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "src/base/dynamic_library.h"

namespace chord::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvrtcHelp =
    "install a CUDA 13 toolkit or the nvidia-cuda-nvrtc wheel, or set CHORD_NVRTC_LIBRARY to the "
    "library or its folder; a cubin that is in the cache needs no compiler";

// Newest first. 11 has no sm_90a.
constexpr const char* kSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Where NVRTC lies under a folder that a user names: itself, a toolkit, site-packages, nvidia/.
constexpr const char* kSubfolders[] = {
    "", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "cu13/lib", "cuda_nvrtc/lib",
};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<std::string> inside_folder(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* soname : kSonames)
    for (const char* subfolder : kSubfolders)
      if (const fs::path path = folder / subfolder / soname; is_file(path))
        found.push_back(path.string());
  return found;
}

// The numbers of "cuda-12.8", so that 12.10 is newer than 12.9; none for plain "cuda".
std::vector<int> version_of(const std::string& folder) {
  std::vector<int> numbers;
  bool in_number = false;
  for (const char c : folder) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) numbers.push_back(0);
    if (digit && numbers.back() < 100000) numbers.back() = numbers.back() * 10 + (c - '0');
    in_number = digit;
  }
  return numbers;
}

// "cuda" is the administrator's choice and comes first, then the versions, newest first.
std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it("/usr/local", error), end; !error && it != end;
       it.increment(error))
    if (it->path().filename().string().rfind("cuda-", 0) == 0) folders.push_back(it->path());
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    return version_of(a.filename().string()) > version_of(b.filename().string());
  });
  folders.insert(folders.begin(), "/usr/local/cuda");
  return folders;
}

std::vector<std::string> default_candidates() {
  const std::vector<fs::path> toolkits = toolkit_folders();
  std::vector<std::string> candidates;
  for (const char* soname : kSonames) {
    candidates.push_back(soname);
    for (const fs::path& toolkit : toolkits)
      for (const char* lib : {"lib64", "lib"})
        if (const fs::path path = toolkit / lib / soname; is_file(path))
          candidates.push_back(path.string());
  }
  return candidates;
}

// NVRTC opens its builtins by bare name, which the loader seeks on its own path only, where no
// wheel is. Opened by path before, they are found by that name.
void open_builtins(const NvrtcApi& api) {
  const fs::path path = fs::path(api.path).parent_path() /
                        fmt::format("libnvrtc-builtins.so.{}.{}", api.major, api.minor);
  if (is_file(path)) static_cast<void>(base::DynamicLibrary::open(path.string()));
}

Result<NvrtcApi> fill_nvrtc_table(const base::DynamicLibrary& library) {
  NvrtcApi api;
  api.path = library.path();
  const bool complete = library.find("nvrtcGetErrorString", api.get_error_string) &&
                        library.find("nvrtcVersion", api.version) &&
                        library.find("nvrtcCreateProgram", api.create_program) &&
                        library.find("nvrtcDestroyProgram", api.destroy_program) &&
                        library.find("nvrtcCompileProgram", api.compile_program) &&
                        library.find("nvrtcGetProgramLogSize", api.get_program_log_size) &&
                        library.find("nvrtcGetProgramLog", api.get_program_log) &&
                        library.find("nvrtcGetCUBINSize", api.get_cubin_size) &&
                        library.find("nvrtcGetCUBIN", api.get_cubin) &&
                        library.find("nvrtcGetPTXSize", api.get_ptx_size) &&
                        library.find("nvrtcGetPTX", api.get_ptx);
  if (!complete || api.version(&api.major, &api.minor) != NVRTC_SUCCESS)
    return Error{ErrorCode::unavailable, "use " + api.path + " as NVRTC",
                 "it lacks entry points of NVRTC", "CUDA 12.0 or newer is needed"};
  open_builtins(api);
  return api;
}

struct Version {
  int major, minor;
};

Version needed_version(Architecture arch) {
  switch (arch) {
    case Architecture::sm_90a:
      return {12, 0};
    case Architecture::sm_100a:
      return {12, 8};
    case Architecture::sm_103a:
      return {12, 9};
  }
  return {13, 0};
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::optional<std::string>& library) {
  if (!library) return default_candidates();
  std::error_code ignored;
  if (fs::is_directory(*library, ignored)) return inside_folder(*library);
  return {*library};
}

Result<NvrtcApi> open_nvrtc(const std::optional<std::string>& library) {
  std::string tried;
  for (const std::string& candidate : nvrtc_candidates(library)) {
    const auto opened = base::DynamicLibrary::open(candidate);
    if (opened.ok()) return fill_nvrtc_table(*opened);
    tried += (tried.empty() ? "" : "; ") + opened.error().found;
  }
  const std::string asked =
      library ? "open NVRTC at '" + *library + "'" : std::string("open NVRTC");
  if (tried.empty()) tried = "no libnvrtc.so.13 or libnvrtc.so.12 in that folder";
  return Error{ErrorCode::unavailable, asked, tried, kNvrtcHelp};
}

Status check_nvrtc_version(const NvrtcApi& api, Architecture arch) {
  const Version needed = needed_version(arch);
  if (api.major > needed.major || (api.major == needed.major && api.minor >= needed.minor))
    return {};
  return Error{ErrorCode::unavailable, fmt::format("compile for {}", name(arch)),
               fmt::format("{} is NVRTC {}.{}, {} needs {}.{} or newer", api.path, api.major,
                           api.minor, name(arch), needed.major, needed.minor),
               kNvrtcHelp};
}

}  // namespace chord::cuda
