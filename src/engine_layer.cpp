// The part of the Engine that prepares and launches the kernels around the GEMMs of a layer.
#include <array>

#include "src/cuda/device.h"
#include "src/engine_state.h"
#include "src/launch/launch.h"
#include "src/layer/layer_params.h"
#include "src/layer/layer_source.h"

namespace chord {

using layer::LayerKernel;

struct LayerKernels::State {
  std::array<PreparedMemo::Value, layer::kLayerKernels.size()> kernels;

  const PreparedKernel::State& of(LayerKernel kernel) const {
    return *kernels[static_cast<std::size_t>(kernel)];
  }
};

Result<LayerKernels> Engine::prepare_layer_kernels() {
  CHORD_TRY(const cuda::ContextId context, cuda::current_context_id());
  CHORD_TRY(const cuda::Device device, cuda::current_device());
  auto state = std::make_shared<LayerKernels::State>();
  for (const LayerKernel kernel : layer::kLayerKernels) {
    CHORD_TRY(const cubin::Recipe recipe, cubin::layer_recipe(device.arch, kernel));
    CHORD_TRY(state->kernels[static_cast<std::size_t>(kernel)], state_->load_once(context, recipe));
  }
  return LayerKernels(std::move(state));
}

namespace {

template <class Params>
Status enqueue(const PreparedKernel::State& kernel, unsigned blocks, bool is_dependent,
               const Params& params, Stream stream) {
  const launch::Grid grid{blocks, static_cast<unsigned>(kernel.facts.threads),
                          static_cast<unsigned>(kernel.facts.shared_bytes), is_dependent};
  return launch::enqueue(*kernel.driver, kernel.module->function(), grid, &params,
                         static_cast<cuda::CUstream>(stream));
}

template <class Params, class Arguments>
Status launch_one(const PreparedKernel::State& kernel, const Arguments& arguments, Stream stream) {
  Params params{};
  CHORD_TRY(const unsigned blocks, layer::fill_params(arguments, params));
  if (blocks == 0) return {};
  return enqueue(kernel, blocks, arguments.programmatic_dependent_launch, params, stream);
}

}  // namespace

Status Engine::launch(const LayerKernels& kernels, const GateArguments& arguments, Stream stream) {
  return launch_one<abi::GateParams>(kernels.state().of(LayerKernel::gate), arguments, stream);
}

Status Engine::launch(const LayerKernels& kernels, const AlignArguments& arguments, Stream stream) {
  abi::AlignParams params{};
  CHORD_TRY(const unsigned blocks, layer::fill_params(arguments, params));
  const PreparedKernel::State& kernel = kernels.state().of(LayerKernel::align);
  if (blocks > 1) {
    params.pass = abi::AlignPass::count;
    CHORD_TRY(enqueue(kernel, blocks, arguments.programmatic_dependent_launch, params, stream));
    params.pass = abi::AlignPass::place;
  }
  return enqueue(kernel, blocks, arguments.programmatic_dependent_launch, params, stream);
}

Status Engine::launch(const LayerKernels& kernels, const SwigluArguments& arguments,
                      Stream stream) {
  return launch_one<abi::SwigluParams>(kernels.state().of(LayerKernel::swiglu), arguments, stream);
}

Status Engine::launch(const LayerKernels& kernels, const CombineArguments& arguments,
                      Stream stream) {
  return launch_one<abi::CombineParams>(kernels.state().of(LayerKernel::combine), arguments,
                                        stream);
}

}  // namespace chord
