// From loops to steps and atoms.
#include "src/sass/kernel_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/cuda/entry.h"

namespace chord::sass {
namespace {

constexpr int kStripsPerAtom = abi::kAtomRows / abi::kStripRows;
constexpr int kMmaPerStrip = abi::kAtomDepth / 16;  // of one slice and n8 step

Error does_not_fit(const std::vector<TensorLoop>& loops, const abi::Schedule& schedule) {
  std::string found;
  for (const TensorLoop& loop : loops)
    found += fmt::format("{}{}", found.empty() ? "" : ", ", loop.count("HMMA"));
  return Error{
      ErrorCode::unsupported,
      fmt::format("name the loops of a kernel of tile {}x{}", schedule.tile_m, schedule.tile_n),
      fmt::format("loops with {} HMMA, not one for each number of n8 steps up to {}", found,
                  schedule.tile_m / 8),
      "a loop was unrolled or is another one: src/sass/kernel_counts.h says what is "
      "expected"};
}

}  // namespace

Result<KernelCounts> kernel_counts(std::string_view text, const abi::Schedule& schedule) {
  CHORD_TRY(const Listing listing, parse_listing(text, cuda::kEntryName));
  CHORD_TRY(const std::vector<TensorLoop> loops, tensor_loops(listing));
  const int strips = schedule.tile_n / (abi::kStripRows * abi::kConsumerWarps);
  const int strip_slices = schedule.slices_per_stage * strips;  // of one turn
  KernelCounts counts;
  counts.code_bytes = static_cast<std::int64_t>(listing.size()) * kInstructionBytes;
  for (const TensorLoop& loop : loops) {
    LoopCounts made;
    const int per_step = strip_slices * kMmaPerStrip;
    if (loop.count("HMMA") % per_step != 0) return does_not_fit(loops, schedule);
    made.steps = loop.count("HMMA") / per_step;
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
  return counts;
}

}  // namespace chord::sass
