// nvdisasm: where it lies, and the text that it makes of a cubin. Must not know what is in it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "chord/overrides.h"
#include "chord/status.h"

namespace chord::sass {

// In this order: CHORD_NVDISASM alone if it is set; else every folder of PATH, the CUDA toolkit,
// and where pip puts the wheel: the virtual environment, the user's and the system's packages.
std::vector<std::string> nvdisasm_candidates(const EnvironmentLookup& environment);

// The first candidate that is a program. The error says how to get one.
Result<std::string> find_nvdisasm(const EnvironmentLookup& environment);

// What `nvdisasm -c` prints of the cubin.
Result<std::string> disassemble(const std::string& nvdisasm, std::string_view cubin,
                                std::chrono::milliseconds deadline = std::chrono::seconds(30));

}  // namespace chord::sass
