// The counts of a kernel's loops, shown.
#include "src/explain_sass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/sass/disassembler.h"

namespace chord {
namespace {

using Json = nlohmann::ordered_json;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<SassExplanation> explain_sass(const std::string& nvdisasm, Decision decision,
                                     CompiledKernel kernel) {
  CHORD_TRY(const std::string text, sass::disassemble(nvdisasm, kernel.cubin));
  CHORD_TRY(sass::KernelCounts counts, sass::kernel_counts(text, decision.kernel));
  return SassExplanation{std::move(decision), std::move(kernel), std::move(counts)};
}

Json json_of(const sass::LoopCounts& loop) {
  Json json{{"steps", loop.steps},
            {"instructions", loop.instructions},
            {"instructions_per_atom", loop.instructions_per_atom}};
  for (const char* opcode : sass::kShownOpcodes) json[lower(opcode)] = loop.count(opcode);
  return json;
}

Json json_of(const SassExplanation& e) {
  Json loops = Json::array();
  for (const sass::LoopCounts& loop : e.counts.loops) loops.push_back(json_of(loop));
  return Json{
      {"arch", name(e.decision.descriptor.arch)},  {"key", e.kernel.key},
      {"compiler", e.kernel.facts.compiler},       {"registers", e.kernel.facts.registers},
      {"local_bytes", e.kernel.facts.local_bytes}, {"shared_bytes", e.kernel.facts.shared_bytes},
      {"code_bytes", e.counts.code_bytes},         {"loops", std::move(loops)}};
}

std::string to_text(const SassExplanation& e) {
  const GemmDescriptor& d = e.decision.descriptor;
  const KernelSchedule& k = e.decision.kernel;
  const KernelFacts& facts = e.kernel.facts;
  std::string text = fmt::format(
      "{} {} N {} x K {}: tile {} x {}, {} slices per stage, {}\n"
      "  registers {}, local bytes (spills) {}, shared bytes {}, code bytes {}; by {}\n"
      "  instructions of one warp: of a turn of the loop over K, and per atom of 64 x 64 weights\n",
      name(d.arch), name(d.family), d.n, d.k, k.tile_m, k.tile_n, k.slices_per_stage,
      name(k.dequantisation), facts.registers, facts.local_bytes, facts.shared_bytes,
      e.counts.code_bytes, facts.compiler);
  std::vector<const char*> shown;  // what no loop has would only be width
  for (const char* opcode : sass::kShownOpcodes)
    if (std::any_of(e.counts.loops.begin(), e.counts.loops.end(),
                    [&](const sass::LoopCounts& loop) { return loop.count(opcode) > 0; }))
      shown.push_back(opcode);
  text += fmt::format("  {:>5}  {:>12}  {:>8}", "steps", "instructions", "per atom");
  for (const char* opcode : shown) text += fmt::format("  {:>5}", opcode);
  text += "\n";
  for (const sass::LoopCounts& loop : e.counts.loops) {
    text += fmt::format("  {:>5}  {:>12}  {:>8.1f}", loop.steps, loop.instructions,
                        loop.instructions_per_atom);
    for (const char* opcode : shown) text += fmt::format("  {:>5}", loop.count(opcode));
    text += "\n";
  }
  return text;
}

}  // namespace chord
