// The recorded counts: which kernels they are of, how they are made, where they lie. One file per
// full NVRTC version, because another build of the compiler may make other code. nvdisasm's version
// changes the text (more labels, other spellings), never these numbers.
//
//   chord-test-sass --update-golden     rewrites the file of the NVRTC at hand, about half a minute
//
// Needs no GPU. After a change of a kernel, files of other versions are out of date until somebody
// with that NVRTC runs the same; nobody else sees them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chord/schedule.h"
#include "src/cubin/compiler.h"
#include "src/sass/kernel_counts.h"

namespace chord::sass_test {

struct GoldenKernel {
  std::string label;  // "sm_90a indexed 4096x7168 block_m 8 tile 16x512 fused"
  Decision decision;
};

Result<std::vector<GoldenKernel>> golden_kernels();

struct BuiltKernel {
  GoldenKernel kernel;
  cubin::CompiledCubin cubin;
  std::optional<sass::KernelCounts> counts;  // empty without nvdisasm
};

// "13.0.88" of the NVRTC of this machine.
Result<std::string> nvrtc_version();

// Compiles all of them with several threads, and counts them where `nvdisasm` is given.
Result<std::vector<BuiltKernel>> build_kernels(const std::optional<std::string>& nvdisasm);

nlohmann::ordered_json facts_json(const BuiltKernel& built);  // registers, shared_bytes
nlohmann::ordered_json loops_json(const BuiltKernel& built);  // needs counts

std::string golden_path(const std::string& version);
std::vector<std::string> golden_versions();  // that there are files of

Status update_golden();

}  // namespace chord::sass_test
