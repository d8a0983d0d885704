// The innermost loops of a listing that issue tensor instructions, found by control flow and not by
// the order of the text: ptxas moves the waiting of a barrier out of line, to the end of the
// function, and it branches back from there into the middle of the loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/sass/listing.h"

namespace chord::sass {

using OpcodeCounts = std::map<std::string, int>;

struct TensorLoop {
  std::size_t first = 0, last = 0;  // of the straight body: header to the last branch back
  OpcodeCounts opcodes;
  std::string tensor;  // its tensor instruction with all modifiers: "HGMMA.64x96x16.F32.BF16"

  // Of the tensor opcode, HMMA or HGMMA.
  int tensor_count() const { return count(tensor.substr(0, tensor.find('.'))); }
  int count(const std::string& opcode) const {
    const auto known = opcodes.find(opcode);
    return known == opcodes.end() ? 0 : known->second;
  }
  int instructions() const;
};

// In the order of the text. The counts are those of one iteration that waits for nothing: the
// straight body, in which a wait that is retried in place counts once and what lies out of line
// does not count. Errors: no such loop, one with tensor instructions of several shapes, or tensor
// instructions outside of all of them, because then the counts are not the whole work.
Result<std::vector<TensorLoop>> tensor_loops(const Listing& listing);

}  // namespace chord::sass
