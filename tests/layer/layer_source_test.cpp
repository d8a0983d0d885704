// The four entry texts: geometry as the kernels count on it, and every architecture compiles them.
#include "src/layer/layer_source.h"

#include <gtest/gtest.h>

#include "tests/cubin/nvrtc.h"

namespace chord::layer {
namespace {

TEST(LayerSource, NamesKernelEntryAndThreads) {
  struct Case {
    LayerKernel kernel;
    const char *name, *call;
    int threads;
    std::int64_t shared_bytes;
  };
  for (const Case& c : {Case{LayerKernel::gate, "layer_gate.cu", "gate(p)", 128, 0},
                        {LayerKernel::align, "layer_align.cu", "align(p)", 1024, 69632},
                        {LayerKernel::swiglu, "layer_swiglu.cu", "swiglu(p)", 256, 0},
                        {LayerKernel::combine, "layer_combine.cu", "combine(p)", 256, 0}}) {
    const LayerKernelText text = layer_kernel_text(c.kernel);
    EXPECT_EQ(text.name, c.name);
    EXPECT_EQ(text.threads, c.threads);
    EXPECT_EQ(text.shared_bytes, c.shared_bytes);
    EXPECT_TRUE(test::contains(text.source, std::string("chord::device::") + c.call));
    EXPECT_TRUE(
        test::contains(text.source, "__launch_bounds__(" + std::to_string(c.threads) + ")"));
  }
}

TEST(LayerSource, EveryArchitectureCompilesEveryKernel) {
  CHORD_NEEDS_NVRTC(api);
  cubin::NvrtcCompiler compiler(api);
  for (const Architecture arch :
       {Architecture::sm_90a, Architecture::sm_100a, Architecture::sm_103a})
    for (const LayerKernel kernel : kLayerKernels) {
      const LayerKernelText text = layer_kernel_text(kernel);
      const auto cubin = compiler.compile(test::request_of(text.name, text.source, arch));
      ASSERT_TRUE(cubin.ok()) << cubin.error().message();
      EXPECT_LE(cubin->registers * text.threads, 65536) << text.name;
      // ptxas keeps align of Blackwell to 32 registers, and 40 bytes of it go to memory and back.
      EXPECT_LE(cubin->spill_bytes, kernel == LayerKernel::align ? 64 : 0) << cubin->log;
    }
}

}  // namespace
}  // namespace chord::layer
