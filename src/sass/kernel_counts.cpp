// From loops to steps and atoms.
#include "src/sass/kernel_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "chord/schedule.h"
#include "src/cuda/entry.h"

namespace chord::sass {
namespace {

constexpr int kStripsPerAtom = abi::kAtomRows / abi::kStripRows;
constexpr int kTensorPerStrip = abi::kAtomDepth / 16;  // of one slice: mma of one n8 step, wgmma

std::vector<int> expected_steps(const abi::Schedule& schedule) {
  std::vector<int> steps;
  for (int i = schedule.widths - 1; i >= 0; --i)
    steps.push_back((schedule.tile_m - i * schedule.width_step) / 8);
  return steps;
}

Error does_not_fit(const std::vector<TensorLoop>& loops, const abi::Schedule& schedule) {
  std::string found;
  for (const TensorLoop& loop : loops)
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", loop.tensor_count(), loop.tensor);
  return Error{ErrorCode::unsupported,
               fmt::format("name the loops of a {} kernel of tile {}x{}", name(schedule.mainloop),
                           schedule.tile_m, schedule.tile_n),
               fmt::format("loops with {}, not one for each {}", found,
                           schedule.mainloop == abi::Mainloop::mma
                               ? fmt::format("number of n8 steps up to {}", schedule.tile_m / 8)
                               : fmt::format("of {} widths", schedule.widths)),
               "a loop was unrolled or is another one: src/sass/kernel_counts.h says what is "
               "expected"};
}

// n8 steps of a loop; 0 if it is none of the schedule's. An mma names one step, and a strip has one
// for each; a wgmma names all steps: HGMMA.64x96x16.
int steps_of(const TensorLoop& loop, const abi::Schedule& schedule, int strip_slices) {
  const int per_strip = strip_slices * kTensorPerStrip;
  if (schedule.mainloop == abi::Mainloop::mma)
    return loop.tensor_count() % per_strip == 0 ? loop.tensor_count() / per_strip : 0;
  int columns = 0;
  if (std::sscanf(loop.tensor.c_str(), "HGMMA.64x%dx16", &columns) != 1) return 0;
  return loop.tensor_count() == per_strip ? columns / 8 : 0;
}

}  // namespace

Result<KernelCounts> kernel_counts(std::string_view text, const abi::Schedule& schedule) {
  CHORD_TRY(const Listing listing, parse_listing(text, cuda::kEntryName));
  CHORD_TRY(const std::vector<TensorLoop> loops, tensor_loops(listing));
  const int strip_slices = schedule.slices_per_stage * abi::warp_strips(schedule);  // of one turn
  KernelCounts counts;
  counts.code_bytes = static_cast<std::int64_t>(listing.size()) * kInstructionBytes;
  for (const TensorLoop& loop : loops) {
    LoopCounts made;
    made.steps = steps_of(loop, schedule, strip_slices);
    if (made.steps == 0) return does_not_fit(loops, schedule);
    made.instructions = loop.instructions();
    made.instructions_per_atom =
        static_cast<double>(made.instructions) * kStripsPerAtom / strip_slices;
    made.opcodes = loop.opcodes;
    counts.loops.push_back(std::move(made));
  }
  const auto by_steps = [](const LoopCounts& a, const LoopCounts& b) { return a.steps < b.steps; };
  const auto same_steps = [](const LoopCounts& a, const LoopCounts& b) {
    return a.steps == b.steps;
  };
  std::sort(counts.loops.begin(), counts.loops.end(), by_steps);
  const bool twice = std::adjacent_find(counts.loops.begin(), counts.loops.end(), same_steps) !=
                     counts.loops.end();
  if (twice || counts.loops.back().steps != schedule.tile_m / 8)
    return does_not_fit(loops, schedule);
  if (abi::uses_wgmma(schedule)) {
    std::vector<int> steps;
    for (const LoopCounts& loop : counts.loops) steps.push_back(loop.steps);
    if (steps != expected_steps(schedule)) return does_not_fit(loops, schedule);
  }
  return counts;
}

}  // namespace chord::sass
