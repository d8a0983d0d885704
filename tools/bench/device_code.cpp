// Recipes of the helper kernels, and their loading and launching.
#include "tools/bench/device_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/log.h"
#include "src/launch/launch.h"
#include "tools/bench/embedded.h"

namespace chord::bench {
namespace {

constexpr std::string_view kFolder = "tools/bench/device/";

std::string_view embedded_text(const std::string& file) {
  for (std::size_t i = 0; i < embedded_file_count; ++i)
    if (file == embedded_files[i].name) return {embedded_files[i].text, embedded_files[i].size};
  return {};
}

}  // namespace

std::vector<source::DeviceFile> device_files() {
  std::vector<source::DeviceFile> files = source::embedded_device_files();
  for (std::size_t i = 0; i < embedded_file_count; ++i) {
    const EmbeddedFile& file = embedded_files[i];
    files.push_back({file.name, std::string_view(file.text, file.size)});
  }
  return files;
}

const char* name(Helper helper) {
  switch (helper) {
    case Helper::fill_codes:
      return "fill_codes";
    case Helper::fill_scales:
      return "fill_scales";
    case Helper::fill_activations:
      return "fill_activations";
    case Helper::reference:
      return "reference";
    case Helper::finish:
      return "finish";
    case Helper::compare:
      return "compare";
    case Helper::changed:
      return "changed";
    case Helper::read:
      return "read";
  }
  return "unknown";
}

Result<cubin::Recipe> helper_recipe(Helper helper, Architecture arch) {
  cubin::Recipe recipe;
  recipe.arch = arch;
  recipe.label = fmt::format("{} helper {}", chord::name(arch), name(helper));
  recipe.source_name = fmt::format("{}.cu", name(helper));
  recipe.source = embedded_text(fmt::format("{}{}", kFolder, recipe.source_name));
  if (recipe.source.empty())
    return Error{ErrorCode::internal, recipe.label, "its text is not embedded", "build again"};
  CHORD_TRY(recipe.files, source::included_files(recipe.source, device_files()));
  recipe.threads = 1;  // each launch has its own block size
  recipe.fields = {{"helper", name(helper)}};
  return recipe;
}

Result<std::unique_ptr<DeviceCode>> DeviceCode::create(const Engine& engine) {
  const Options& options = engine.options();
  std::unique_ptr<DeviceCode> code(new DeviceCode(options));
  code->log_ = base::make_log(options.log_level.value_or(LogLevel::warn), options.log);
  cache::CacheSettings settings;
  settings.writable_dir = options.cache_dir;
  settings.readonly_dirs = options.readonly_cache_dirs.value_or(std::vector<std::string>{});
  CHORD_TRY(code->cache_,
            cache::TieredCache::open(std::move(settings), code->files_, code->clock_, code->log_));
  code->store_ = std::make_unique<cubin::CubinStore>(
      *code->cache_, code->compiler_, options.jit.value_or(JitPolicy::allow), code->log_);
  return code;
}

Result<PrewarmCount> DeviceCode::prewarm(Architecture arch, std::vector<cubin::Recipe> recipes,
                                         int jobs) {
  for (int i = 0; i < kHelperCount; ++i) {
    CHORD_TRY(cubin::Recipe recipe, helper_recipe(static_cast<Helper>(i), arch));
    recipes.push_back(std::move(recipe));
  }
  if (jobs <= 0) jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<std::size_t> next{0};
  std::atomic<int> compiles{0};
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto take_all = [&] {
    for (std::size_t i = next++; i < recipes.size(); i = next++) {
      bool compiled = false;
      const Result<cubin::EntryPointer> made = store_->obtain(recipes[i], &compiled);
      compiles += compiled ? 1 : 0;
      if (made.ok()) continue;
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = made.error();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < jobs; ++i) threads.emplace_back(take_all);
    take_all();
  }
  if (first_error) return *first_error;
  return PrewarmCount{static_cast<int>(recipes.size()), compiles};
}

Status DeviceCode::load(Architecture arch) {
  for (int i = 0; i < kHelperCount; ++i) {
    CHORD_TRY(const cubin::Recipe recipe, helper_recipe(static_cast<Helper>(i), arch));
    CHORD_TRY(modules_[i], load(recipe));
  }
  return {};
}

Result<std::shared_ptr<const module::LoadedModule>> DeviceCode::load(const cubin::Recipe& recipe) {
  CHORD_TRY(const cubin::EntryPointer entry, store_->obtain(recipe));
  const module::ExpectedFacts expected{entry->threads, entry->shared_bytes, std::nullopt,
                                       std::nullopt};
  return module::LoadedModule::load(entry->cubin, expected, recipe.label);
}

Status DeviceCode::launch(Helper helper, std::int64_t ctas, int threads, const void* params,
                          cuda::CUstream stream) const {
  if (ctas == 0) return {};
  const auto& module = modules_[static_cast<int>(helper)];
  if (!module || ctas < 0 || ctas > 0x7fffffff)
    return Error{ErrorCode::internal, fmt::format("launch helper {}", name(helper)),
                 module ? fmt::format("a grid of {} blocks", ctas) : "it is not loaded", ""};
  CHORD_TRY(const cuda::DriverApi* driver, cuda::driver_api());
  const launch::Grid grid{static_cast<unsigned>(ctas), static_cast<unsigned>(threads), 0, false};
  return launch::enqueue(*driver, module->function(), grid, params, stream);
}

}  // namespace chord::bench
