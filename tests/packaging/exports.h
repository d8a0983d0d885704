// What the shared library exports, as the linker names it, and what the public headers declare.
//
//   chord-test-packaging --update-golden     rewrites tests/golden/exported_symbols.txt
//
// The list holds mangled names: those are the interface, and no demangler's version changes them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "chord/status.h"

namespace chord::packaging_test {

std::string golden_path();
std::vector<std::string> golden_symbols();

// Sorted, without the version of the symbol. Needs nm.
Result<std::vector<std::string>> exported_symbols(const std::string& library);

// "chord::Engine::plan" of a function or of what the compiler adds to a class; the name itself of a
// C function.
std::string qualified_name(const std::string& symbol);

// What the public headers declare with CHORD_API or CHORD_C_API, or inside a class that has it.
std::set<std::string> declared_names();

Status update_golden();

}  // namespace chord::packaging_test
