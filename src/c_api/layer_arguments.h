// Arguments of the layer kernels, from the C face to the C++ face. Allocates nothing when all is
// well.
#pragma once

#include "chord/layer.h"
#include "src/c_api/structs.h"

namespace chord::c_api {

Status convert(const Call& call, const chord_gate_arguments_t& from, GateArguments& to);
Status convert(const Call& call, const chord_align_arguments_t& from, AlignArguments& to);
Status convert(const Call& call, const chord_swiglu_arguments_t& from, SwigluArguments& to);
Status convert(const Call& call, const chord_combine_arguments_t& from, CombineArguments& to);

}  // namespace chord::c_api
