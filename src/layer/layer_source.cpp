// One template for all four.
#include "src/layer/layer_source.h"

#include <fmt/format.h>

namespace chord::layer {
namespace {

LayerKernelText text_of(LayerKernel which, const char* kernel, const char* params,
                        std::int64_t shared_bytes) {
  const int threads = layer_kernel_threads(which);
  return {fmt::format("layer_{}.cu", kernel),
          fmt::format(R"(#include "kernels/layer/{}.cuh"

extern "C" __global__ void __launch_bounds__({})
chord_kernel(const __grid_constant__ chord::abi::{} p) {{
  chord::device::{}(p);
}}
)",
                      kernel, threads, params, kernel),
          threads, shared_bytes};
}

}  // namespace

LayerKernelText layer_kernel_text(LayerKernel kernel) {
  switch (kernel) {
    case LayerKernel::gate:
      return text_of(kernel, "gate", "GateParams", 0);
    case LayerKernel::align:
      return text_of(kernel, "align", "AlignParams", abi::align_shared_bytes());
    case LayerKernel::swiglu:
      return text_of(kernel, "swiglu", "SwigluParams", 0);
    case LayerKernel::combine:
      break;
  }
  return text_of(kernel, "combine", "CombineParams", 0);
}

}  // namespace chord::layer
