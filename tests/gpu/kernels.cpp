// From specs to decisions, and the register.
#include "tests/gpu/kernels.h"

#include <set>
#include <string>

#include "heuristics/kernel_mapping.h"

namespace chord::gpu_test {
namespace {

std::vector<DecisionSource>& sources() {
  static std::vector<DecisionSource> all;
  return all;
}

std::optional<abi::Release> release_of_all;

}  // namespace

void set_release(abi::Release release) { release_of_all = release; }

Result<Decision> decision_of(const KernelSpec& spec, Architecture arch) {
  Decision decision;
  decision.descriptor.family = spec.family;
  decision.descriptor.arch = arch;
  decision.descriptor.num_sms = default_num_sms(arch);
  decision.descriptor.n = spec.n;
  decision.descriptor.k = spec.k;
  decision.descriptor.experts = 1;
  decision.descriptor.epilogue = spec.epilogue;
  decision.schedule.block_m = spec.block_m;
  Overrides pins = spec.pins;
  if (release_of_all) pins.release = release_of_all;
  CHORD_TRY(decision.kernel,
            heuristics::kernel_fields(decision.descriptor, decision.schedule, pins));
  return decision;
}

bool is_possible(const KernelSpec& spec) { return decision_of(spec, Architecture::sm_90a).ok(); }

bool register_kernels(DecisionSource source) {
  sources().push_back(std::move(source));
  return true;
}

bool register_kernels(std::function<std::vector<KernelSpec>()> specs) {
  return register_kernels(
      [specs = std::move(specs)](const Engine&, Architecture arch) -> Decisions {
        std::vector<Decision> decisions;
        for (const KernelSpec& spec : specs()) {
          CHORD_TRY(Decision decision, decision_of(spec, arch));
          decisions.push_back(std::move(decision));
        }
        return decisions;
      });
}

Decisions registered_kernels(const Engine& engine, Architecture arch) {
  std::vector<Decision> all;
  std::set<std::string> seen;
  for (const DecisionSource& source : sources()) {
    CHORD_TRY(const std::vector<Decision> decisions, source(engine, arch));
    for (const Decision& decision : decisions) {
      CHORD_TRY(std::string text, engine.source(decision));
      if (seen.insert(std::move(text)).second) all.push_back(decision);
    }
  }
  return all;
}

}  // namespace chord::gpu_test
