// The list of kernels, their build, and the file.
#include "tests/sass/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "heuristics/kernel_mapping.h"
#include "src/base/environment.h"
#include "src/cubin/nvrtc_compiler.h"
#include "src/cubin/recipe.h"
#include "src/explain_sass.h"
#include "src/sass/disassembler.h"

namespace chord::sass_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFolder = CHORD_SOURCE_DIR "/tests/golden";
constexpr const char* kBefore = "sass_nvrtc_";

struct Spec {
  Architecture arch = Architecture::sm_90a;
  int block_m = 8;
  Family family = Family::indexed;
  Overrides pins = {};
  std::int64_t rows_per_expert = 0;  // 0: of decode
  std::int64_t n = 4096, k = 7168;   // gate and up of Kimi K2.5, EP8
  Epilogue epilogue = Epilogue::none;
};

// Every mma tile height on every architecture, one step aside from the tile of decode, then every
// wgmma tile, and every one of rows that stay.
std::vector<Spec> specs() {
  using enum Architecture;
  std::vector<Spec> all;
  for (const Architecture arch : {sm_90a, sm_100a, sm_103a})
    for (const int block_m : {8, 24, 32, 64})  // tile_m 16, 24, 32, 40
      all.push_back({.arch = arch, .block_m = block_m});
  for (const Architecture arch : {sm_90a, sm_103a})
    for (const Family family : {Family::grouped_masked, Family::grouped_contiguous})
      all.push_back({.arch = arch, .family = family});
  for (const int tile_n : {128, 256}) all.push_back({.pins = {.tile_n = tile_n}});
  for (const auto form : {abi::Dequantisation::ordinary, abi::Dequantisation::accumulator})
    all.push_back({.pins = {.dequantisation = form}});
  for (const int rows : {21, 28, 40, 55, 70, 85, 330})
    all.push_back({.block_m = 64, .rows_per_expert = rows});
  for (const int rows : {24, 64, 200})
    all.push_back({.family = Family::grouped_masked, .rows_per_expert = rows});
  for (const int rows : {64, 256})
    all.push_back({.block_m = 128, .family = Family::grouped_contiguous, .rows_per_expert = rows});
  all.push_back({.block_m = 64,
                 .pins = {.dequantisation = abi::Dequantisation::ordinary},
                 .rows_per_expert = 85});
  for (const int rows : {21, 43, 85, 110, 140, 341})  // down, TP8
    all.push_back({.block_m = 64, .rows_per_expert = rows, .n = 7168, .k = 256});
  all.push_back({.family = Family::grouped_masked, .rows_per_expert = 64, .n = 7168, .k = 256});
  for (const int rows : {0, 40, 85})
    all.push_back(
        {.block_m = rows == 0 ? 8 : 64, .rows_per_expert = rows, .epilogue = Epilogue::swiglu});
  all.push_back({.n = 7168, .k = 2048, .epilogue = Epilogue::weighted});
  all.push_back(
      {.block_m = 64, .rows_per_expert = 43, .n = 7168, .k = 256, .epilogue = Epilogue::weighted});
  return all;
}

Result<GoldenKernel> kernel_of(const Spec& spec) {
  GoldenKernel kernel;
  GemmDescriptor& descriptor = kernel.decision.descriptor;
  descriptor.family = spec.family;
  descriptor.arch = spec.arch;
  descriptor.num_sms = default_num_sms(spec.arch);
  descriptor.n = spec.n;
  descriptor.k = spec.k;
  descriptor.experts = 48;
  descriptor.rows = descriptor.experts * spec.rows_per_expert;
  descriptor.expected_m = spec.rows_per_expert;
  descriptor.epilogue = spec.epilogue;
  kernel.decision.schedule.block_m = spec.block_m;
  CHORD_TRY(kernel.decision.kernel,
            heuristics::kernel_fields(descriptor, kernel.decision.schedule, spec.pins));
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(kernel.decision));
  kernel.label = fmt::format("{} {}", recipe.label, name(kernel.decision.kernel.dequantisation));
  return kernel;
}

cubin::NvrtcCompiler& compiler() {
  static cubin::NvrtcCompiler one(base::environment("CHORD_NVRTC_LIBRARY"));
  return one;
}

Result<BuiltKernel> build(const GoldenKernel& kernel, const std::optional<std::string>& nvdisasm) {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(kernel.decision));
  BuiltKernel built{kernel, {}, std::nullopt};
  CHORD_TRY(built.cubin, compiler().compile(cubin::request_of(recipe)));
  if (!nvdisasm) return built;
  CHORD_TRY(const std::string text, sass::disassemble(*nvdisasm, built.cubin.cubin));
  CHORD_TRY(built.counts, sass::kernel_counts(text, kernel.decision.kernel));
  return built;
}

// One line for the facts of a kernel and one for each of its loops, so that a diff is short.
std::string golden_text(const std::string& version, const std::vector<BuiltKernel>& built) {
  std::string text = fmt::format("{{\n\"nvrtc\": {},\n\"kernels\": {{\n", Json(version).dump());
  for (const BuiltKernel& one : built) {
    const std::string facts = facts_json(one).dump();
    text += fmt::format("{}: {},\n \"loops\": [\n", Json(one.kernel.label).dump(),
                        facts.substr(0, facts.size() - 1));
    const Json loops = loops_json(one);
    for (const Json& loop : loops)
      text += fmt::format("  {}{}\n", loop.dump(), &loop == &loops.back() ? "]}" : ",");
    text.insert(text.size() - 1, &one == &built.back() ? "}" : ",");
  }
  return text + "}\n";
}

}  // namespace

Result<std::vector<GoldenKernel>> golden_kernels() {
  std::vector<GoldenKernel> kernels;
  for (const Spec& spec : specs()) {
    CHORD_TRY(GoldenKernel kernel, kernel_of(spec));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Result<std::string> nvrtc_version() {
  CHORD_TRY(const std::string identity, compiler().identity());
  return identity.substr(identity.rfind(' ') + 1);
}

Result<std::vector<BuiltKernel>> build_kernels(const std::optional<std::string>& nvdisasm) {
  CHORD_TRY(const std::vector<GoldenKernel> kernels, golden_kernels());
  std::vector<std::optional<Result<BuiltKernel>>> made(kernels.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++)
      made[i].emplace(build(kernels[i], nvdisasm));
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::clamp(std::thread::hardware_concurrency(), 1u, 8u); ++i)
      threads.emplace_back(work);
    work();
  }
  std::vector<BuiltKernel> built;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i]->ok()) {
      Error error = made[i]->error();
      error.asked = kernels[i].label + ": " + error.asked;
      return error;
    }
    built.push_back(std::move(**made[i]));
  }
  return built;
}

Json facts_json(const BuiltKernel& built) {
  return Json{{"registers", built.cubin.registers},
              {"shared_bytes", abi::shared_bytes(built.kernel.decision.kernel)}};
}

Json loops_json(const BuiltKernel& built) {
  Json loops = Json::array();
  for (const sass::LoopCounts& loop : built.counts.value().loops) loops.push_back(json_of(loop));
  return loops;
}

std::string golden_path(const std::string& version) {
  std::string name = version;
  std::replace(name.begin(), name.end(), '.', '_');
  return fmt::format("{}/{}{}.json", kFolder, kBefore, name);
}

std::vector<std::string> golden_versions() {
  std::vector<std::string> versions;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    std::string name = entry.path().stem().string();
    if (!name.starts_with(kBefore)) continue;
    name.erase(0, std::string(kBefore).size());
    std::replace(name.begin(), name.end(), '_', '.');
    versions.push_back(name);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

Status update_golden() {
  CHORD_TRY(const std::string version, nvrtc_version());
  CHORD_TRY(const std::string nvdisasm, sass::find_nvdisasm(base::process_environment()));
  CHORD_TRY(const std::vector<BuiltKernel> built, build_kernels(nvdisasm));
  const std::string path = golden_path(version);
  std::ofstream file(path, std::ios::binary);
  file << golden_text(version, built);
  file.close();
  if (!file)
    return Error{ErrorCode::io_error, "write " + path, "the file did not take it",
                 "is the source tree writable?"};
  fmt::print("{}: {} kernels\n", path, built.size());
  return {};
}

}  // namespace chord::sass_test
