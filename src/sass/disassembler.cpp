// Finds and runs nvdisasm.
#include "src/sass/disassembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "src/base/program.h"

namespace chord::sass {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "CHORD_NVDISASM";
constexpr const char* kProgram = "nvdisasm";
constexpr const char* kHelp =
    "pip install nvidia-cuda-nvdisasm, or a CUDA 13 toolkit, or set CHORD_NVDISASM to the program";

void add_path(std::vector<std::string>& candidates, const std::string& path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    // Relative folders, and the empty one that means the current folder, are nobody's toolkit.
    if (path[begin] == '/') candidates.push_back(path.substr(begin, end - begin) + "/" + kProgram);
    begin = end + 1;
  }
}

// PREFIX/lib/python3.11/site-packages/nvidia/cu13/bin/nvdisasm
void add_packages(std::vector<std::string>& candidates, const std::string& prefix) {
  if (!prefix.starts_with("/")) return;
  std::error_code problem;
  fs::directory_iterator entry(prefix + "/lib", problem);
  std::vector<std::string> found;
  for (; !problem && entry != fs::directory_iterator(); entry.increment(problem)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      found.push_back((entry->path() / packages / "nvidia/cu13/bin" / kProgram).string());
  }
  std::sort(found.rbegin(), found.rend());
  candidates.insert(candidates.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::string> nvdisasm_candidates(const EnvironmentLookup& environment) {
  const auto variable = [&](const char* name) { return environment(name).value_or(""); };
  if (const std::string asked = variable(kVariable); !asked.empty()) return {asked};
  std::vector<std::string> candidates;
  add_path(candidates, variable("PATH"));
  candidates.push_back(fmt::format("/usr/local/cuda/bin/{}", kProgram));
  add_packages(candidates, variable("VIRTUAL_ENV"));
  if (const std::string home = variable("HOME"); !home.empty())
    add_packages(candidates, home + "/.local");
  add_packages(candidates, "/usr/local");
  add_packages(candidates, "/usr");
  return candidates;
}

Result<std::string> find_nvdisasm(const EnvironmentLookup& environment) {
  const std::vector<std::string> candidates = nvdisasm_candidates(environment);
  for (const std::string& candidate : candidates)
    if (base::is_program(candidate)) return candidate;
  const bool asked = !environment(kVariable).value_or("").empty();
  return Error{ErrorCode::unavailable, "find nvdisasm, which disassembles a cubin",
               asked ? fmt::format("{}={} is no program", kVariable, candidates.front())
                     : "it is neither on PATH, nor in /usr/local/cuda/bin, nor a Python package",
               kHelp};
}

Result<std::string> disassemble(const std::string& nvdisasm, std::string_view cubin,
                                std::chrono::milliseconds deadline) {
  CHORD_TRY(const base::TemporaryFile file, base::TemporaryFile::write(cubin));
  const auto refuse = [&](std::string found) {
    return Error{ErrorCode::unavailable, "disassemble a cubin with " + nvdisasm, std::move(found),
                 kHelp};
  };
  Result<base::ProgramRun> run = base::run_program(nvdisasm, {"-c", file.path()}, deadline);
  if (!run) return refuse(run.error().found);
  if (run->exit_code != 0)
    return refuse(fmt::format("it ended with {}: {}", run->exit_code, run->err.substr(0, 400)));
  if (run->out.empty()) return refuse("it printed nothing");
  return std::move(run->out);
}

}  // namespace chord::sass
