// What the code of a kernel costs, as text and as JSON: chord-explain --sass. Knows values, not the
// engine, the cache or a GPU.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "chord/engine.h"
#include "src/sass/kernel_counts.h"

namespace chord {

struct SassExplanation {
  Decision decision;
  CompiledKernel kernel;
  sass::KernelCounts counts;
};

// Disassembles with `nvdisasm` (sass::find_nvdisasm) and counts.
Result<SassExplanation> explain_sass(const std::string& nvdisasm, Decision decision,
                                     CompiledKernel kernel);

nlohmann::ordered_json json_of(const SassExplanation& explanation);
nlohmann::ordered_json json_of(const sass::LoopCounts& loop);
std::string to_text(const SassExplanation& explanation);

}  // namespace chord
