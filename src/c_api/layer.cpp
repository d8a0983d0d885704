// The kernels around the two GEMMs of a layer; nothing is allocated between a call and its launch.
#include <fmt/format.h>

#include <utility>

#include "src/c_api/handles.h"
#include "src/c_api/layer_arguments.h"
#include "src/cuda/device.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;

namespace {

template <class Arguments, class Theirs>
chord_status_t launch(const char* function, chord_layer_kernels_t kernels, const Theirs* arguments,
                      void* stream) {
  return guarded(function, [&](const Call& call) -> Status {
    CHORD_TRY(call.need(kernels, "kernels"));
    CHORD_TRY(const Theirs c, c_api::read_struct(call, arguments, "arguments"));
    Arguments filled;
    CHORD_TRY(c_api::convert(call, c, filled));
    CHORD_TRY(cuda::require_device(kernels->device));
    return Engine::launch(kernels->loaded, filled, stream);
  });
}

}  // namespace

chord_status_t chord_layer_kernels_prepare(chord_handle_t handle, chord_layer_kernels_t* kernels) {
  return guarded("chord_layer_kernels_prepare", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(kernels, "kernels"));
    CHORD_TRY(cuda::require_device(handle->device));
    CHORD_TRY(LayerKernels loaded, handle->engine.prepare_layer_kernels());
    *kernels = new chord_layer_kernels{std::move(loaded), handle->device};
    return {};
  });
}

void chord_layer_kernels_destroy(chord_layer_kernels_t kernels) { delete kernels; }

chord_status_t chord_align_sizes(int64_t num_ids, int32_t experts, int32_t block_m,
                                 int64_t* capacity, size_t* workspace_bytes) {
  return guarded("chord_align_sizes", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(capacity, "capacity"));
    CHORD_TRY(call.need(workspace_bytes, "workspace_bytes"));
    if (num_ids < 0 || num_ids > 0x7fffffff)
      return call.wrong("num_ids", fmt::format("is {}", num_ids), "0 to 2^31 - 1");
    if (experts < 1 || experts > abi::kMaxAlignedExperts)
      return call.wrong("experts", fmt::format("is {}", experts),
                        fmt::format("1 to {}", abi::kMaxAlignedExperts));
    if (block_m < 8 || block_m > 256 || block_m % 8 != 0)
      return call.wrong("block_m", fmt::format("is {}", block_m), "a multiple of 8 in 8..256");
    const int64_t needed = align_capacity(num_ids, experts, block_m);
    if (needed > 0x7fffffff)
      return call.wrong("num_ids", fmt::format("is {}, with its padding up to {}", num_ids, needed),
                        "ids and padding together at most 2^31 - 1");
    *capacity = needed;
    *workspace_bytes = align_workspace_bytes(num_ids, experts);
    return {};
  });
}

chord_status_t chord_gate(chord_layer_kernels_t kernels, const chord_gate_arguments_t* arguments,
                          void* stream) {
  return launch<GateArguments>("chord_gate", kernels, arguments, stream);
}

chord_status_t chord_align(chord_layer_kernels_t kernels, const chord_align_arguments_t* arguments,
                           void* stream) {
  return launch<AlignArguments>("chord_align", kernels, arguments, stream);
}

chord_status_t chord_swiglu(chord_layer_kernels_t kernels,
                            const chord_swiglu_arguments_t* arguments, void* stream) {
  return launch<SwigluArguments>("chord_swiglu", kernels, arguments, stream);
}

chord_status_t chord_combine(chord_layer_kernels_t kernels,
                             const chord_combine_arguments_t* arguments, void* stream) {
  return launch<CombineArguments>("chord_combine", kernels, arguments, stream);
}
