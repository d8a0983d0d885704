// The floors of the house: who may include what.
#pragma once

#include <string>

#include "tests/structure/source_tree.h"

namespace chord::structure {

// Why `path` may not have this include; empty when it may.
std::string include_fault(const std::string& path, const Include& include);

}  // namespace chord::structure
