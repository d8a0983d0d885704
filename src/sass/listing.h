// The listing of one function as nvdisasm prints it, as instructions with resolved branch targets.
// Strict, so that a listing which was cut or is of another form is an error and never a wrong
// count. Must not know what the instructions mean beyond branching.
//
//         /*2540*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R56+URZ+0x1e000], R37 ;
//         /*2550*/              @!P0 BRA `(.L_x_14) ;
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/status.h"

namespace chord::sass {

inline constexpr std::int64_t kInstructionBytes = 16;  // since SM70

struct Instruction {
  std::string opcode;                 // before the first point: "HMMA" of HMMA.16816.F32.BF16
  std::string modifiers;              // behind it: "16816.F32.BF16"
  std::optional<std::size_t> target;  // of a branch: an index into the listing
  bool falls_through = true;          // control may reach the next instruction
};

// In order of their addresses, without a gap.
using Listing = std::vector<Instruction>;

// The function's part of the text. Indirect branches are refused: their targets are not in it.
Result<Listing> parse_listing(std::string_view text, std::string_view function);

}  // namespace chord::sass
