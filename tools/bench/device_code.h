// The helper kernels: embedded text, compiled by NVRTC through the cubin cache of an engine like
// any other kernel, loaded into the current context, launched by name.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "chord/engine.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "src/cubin/cubin_store.h"
#include "src/cubin/nvrtc_compiler.h"
#include "src/module/module.h"

namespace chord::bench {

enum class Helper {
  fill_codes,
  fill_scales,
  fill_activations,
  reference,
  finish,
  compare,
  changed,
  read
};
inline constexpr int kHelperCount = 8;

const char* name(Helper helper);

// What the text of a kernel of ours may include: the files of device/ and those of the library.
std::vector<source::DeviceFile> device_files();

Result<cubin::Recipe> helper_recipe(Helper helper, Architecture arch);

struct PrewarmCount {
  int kernels = 0;
  int compiles = 0;
};

class DeviceCode {
 public:
  // A cubin store on the folders of the engine; touches no GPU.
  static Result<std::unique_ptr<DeviceCode>> create(const Engine& engine);

  // All helper kernels and `recipes` into the cache, in parallel. Needs no GPU. Fails if one of
  // them can not be compiled; the others are in the cache then.
  Result<PrewarmCount> prewarm(Architecture arch, std::vector<cubin::Recipe> recipes, int jobs = 0);

  // Loads all helper kernels into the current context.
  Status load(Architecture arch);

  // Loads the kernel of a recipe into the current context.
  Result<std::shared_ptr<const module::LoadedModule>> load(const cubin::Recipe& recipe);

  // `params` is the struct of device/params.h that belongs to the helper.
  Status launch(Helper helper, std::int64_t ctas, int threads, const void* params,
                cuda::CUstream stream) const;

  // One thread per item.
  template <class Params>
  Status launch_over(Helper helper, std::int64_t items, const Params& params,
                     cuda::CUstream stream) const {
    constexpr int kThreads = 256;
    return launch(helper, (items + kThreads - 1) / kThreads, kThreads, &params, stream);
  }

 private:
  explicit DeviceCode(const Options& options) : compiler_(options.nvrtc_library) {}

  base::PosixFileSystem files_;
  base::SystemClock clock_;
  LogSink log_;
  std::unique_ptr<cache::TieredCache> cache_;
  cubin::NvrtcCompiler compiler_;
  std::unique_ptr<cubin::CubinStore> store_;
  std::array<std::shared_ptr<const module::LoadedModule>, kHelperCount> modules_;
};

}  // namespace chord::bench
