// From the arguments of a layer kernel to its parameter struct and its blocks. Refuses what can be
// seen to be wrong without reading device memory. Allocates nothing when all is well.
#pragma once

#include "chord/layer.h"

namespace chord::layer {

// Each returns the blocks of the launch; 0: there is nothing to do.
Result<unsigned> fill_params(const GateArguments& arguments, abi::GateParams& params);
Result<unsigned> fill_params(const AlignArguments& arguments, abi::AlignParams& params);
Result<unsigned> fill_params(const SwigluArguments& arguments, abi::SwigluParams& params);
Result<unsigned> fill_params(const CombineArguments& arguments, abi::CombineParams& params);

}  // namespace chord::layer
