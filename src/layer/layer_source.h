// The entry texts of the kernels around the GEMMs of a layer, and their launch geometry. Must not
// know who compiles or launches them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "chord/layer.h"

namespace chord::layer {

enum class LayerKernel { gate, align, swiglu, combine };

inline constexpr std::array<LayerKernel, 4> kLayerKernels{
    LayerKernel::gate, LayerKernel::align, LayerKernel::swiglu, LayerKernel::combine};

struct LayerKernelText {
  std::string name;  // "layer_align.cu"
  std::string source;
  int threads = 0;
  std::int64_t shared_bytes = 0;  // dynamic
};

LayerKernelText layer_kernel_text(LayerKernel kernel);

// Of one block.
constexpr int layer_kernel_threads(LayerKernel kernel) {
  if (kernel == LayerKernel::gate) return abi::kGateWarps * 32;
  return kernel == LayerKernel::align ? abi::kAlignThreads : 256;
}

}  // namespace chord::layer
