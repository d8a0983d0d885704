// Errors of the core in the words of chord.h: which function was called, and the path of the
// argument that is wrong. Must not know what is wrong with it.
#pragma once

#include "chord/status.h"

namespace chord::c_api {

// "activations is a null pointer" of chord_launch_indexed becomes "arguments.activations is ...".
Error spelled_for_c(const char* function, Error error);

}  // namespace chord::c_api
