// What the code of one GEMM kernel costs per weight atom, read from its listing: the loop over K of
// every number of n8 steps, counted and named by what the schedule says a turn of it does.
//
// One turn of the loop is one stage: a consumer warp multiplies slices_per_stage k64 slices of its
// warp_strips strips of 16 weight rows, each with 4 mma of k16 for every n8 step, or with 4 wgmma
// of k16 for all n8 steps of a compiled width. An atom of 64 x 64 weights is 4 strips of one slice,
// wherever its strips lie: per atom is 4 / (slices * strips) of what a turn issues.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "chord/abi/schedule.h"
#include "src/sass/loops.h"

namespace chord::sass {

struct LoopCounts {
  int steps = 0;         // n8 steps that it multiplies
  int instructions = 0;  // of one warp in one turn that waits for nothing
  double instructions_per_atom = 0;
  OpcodeCounts opcodes;

  int count(const char* opcode) const {
    const auto known = opcodes.find(opcode);
    return known == opcodes.end() ? 0 : known->second;
  }
};

struct KernelCounts {
  std::int64_t code_bytes = 0;    // padding included
  std::vector<LoopCounts> loops;  // by steps, ascending
};

// The opcodes that tables show beside the total.
inline constexpr const char* kShownOpcodes[] = {"HMMA",  "HGMMA", "R2UR", "LDSM", "LDS", "HFMA2",
                                                "HADD2", "HMUL2", "FFMA", "LOP3", "SHF"};

// `text` is nvdisasm's of a cubin with the entry cuda::kEntryName. Loops that do not fit the
// schedule - steps that are no whole number, that come twice, whose last is not tile_m / 8 or
// (wgmma) that are not the compiled widths - are an error: the loop was unrolled or is another one,
// and its numbers would mean something else.
Result<KernelCounts> kernel_counts(std::string_view text, const abi::Schedule& schedule);

}  // namespace chord::sass
