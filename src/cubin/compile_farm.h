// Compilers of other machines, as an interface: a recipe is handed in, and its entry appears in the
// remote tier, signed by who made it. Must not know how machines talk to each other.
#pragma once

#include <string>

#include "src/cubin/recipe.h"

namespace chord::cubin {

class CompileFarm {
 public:
  virtual ~CompileFarm() = default;
  // Waits, within a deadline of its own, until somebody has made the entry; the identity of the
  // compiler that made it, which completes the key. Safe from several threads.
  virtual Result<std::string> request(const Recipe& recipe) = 0;
};

}  // namespace chord::cubin
