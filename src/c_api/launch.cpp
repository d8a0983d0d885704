// Launching: the C structs into GemmArguments on the stack, without an allocation or a lock.
#include "src/c_api/handles.h"
#include "src/c_api/structs.h"
#include "src/cuda/device.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;

static_assert(static_cast<int>(abi::ContiguousSpelling::m_indices) == CHORD_GROUPS_M_INDICES);
static_assert(static_cast<int>(abi::ContiguousSpelling::offsets32) == CHORD_GROUPS_OFFSETS32);
static_assert(static_cast<int>(abi::ContiguousSpelling::offsets64) == CHORD_GROUPS_OFFSETS64);

namespace {

// Everything but the routing.
Status fill(const Call& call, const chord_gemm_arguments_t* from, GemmArguments& to) {
  CHORD_TRY(const chord_gemm_arguments_t c, c_api::read_struct(call, from, "arguments"));
  CHORD_TRY(const chord_packed_weight_t weight,
            c_api::read_struct(call, c.weight, "arguments.weight"));
  to.activations = c.activations;
  to.output = c.output;
  to.weight = {weight.codes, weight.scales,
               PackedShape{.experts = weight.experts,
                           .n = weight.n,
                           .k = weight.k,
                           .layout_version = weight.layout_version}};
  CHORD_TRY(to.weight.shape.row_order,
            call.choose<RowOrder>(weight.row_order, "arguments.weight.row_order", 2));
  to.row_weights = c.row_weights;
  to.workspace = c.workspace;
  to.workspace_bytes = c.workspace_bytes;
  CHORD_TRY(to.checked, call.flag(c.checked, "arguments.checked"));
  CHORD_TRY(to.programmatic_dependent_launch,
            call.flag(c.programmatic_dependent_launch, "arguments.programmatic_dependent_launch"));
  return {};
}

Status fill_routing(const Call& call, const chord_indexed_routing_t* from, GemmArguments& to) {
  CHORD_TRY(const chord_indexed_routing_t c, c_api::read_struct(call, from, "routing"));
  to.routing = IndexedRouting{.sorted_ids = c.sorted_ids,
                              .expert_ids = c.expert_ids,
                              .num_tokens_padded = c.num_tokens_padded,
                              .capacity = c.capacity,
                              .num_ids = c.num_ids,
                              .top_k = c.top_k};
  return {};
}

Status fill_routing(const Call& call, const chord_contiguous_routing_t* from, GemmArguments& to) {
  CHORD_TRY(const chord_contiguous_routing_t c, c_api::read_struct(call, from, "routing"));
  CHORD_TRY(const auto spelling,
            call.choose<abi::ContiguousSpelling>(c.spelling, "routing.spelling", 3));
  to.routing = ContiguousRouting{.spelling = spelling, .groups = c.groups, .rows = c.rows};
  return {};
}

Status fill_routing(const Call& call, const chord_masked_routing_t* from, GemmArguments& to) {
  CHORD_TRY(const chord_masked_routing_t c, c_api::read_struct(call, from, "routing"));
  to.routing = MaskedRouting{.masked_m = c.masked_m, .max_m = c.max_m};
  return {};
}

template <class Routing>
chord_status_t launch(const char* function, chord_kernel_t kernel,
                      const chord_gemm_arguments_t* arguments, const Routing* routing,
                      void* stream) {
  return guarded(function, [&](const Call& call) -> Status {
    CHORD_TRY(call.need(kernel, "kernel"));
    GemmArguments filled;
    CHORD_TRY(fill(call, arguments, filled));
    CHORD_TRY(fill_routing(call, routing, filled));
    CHORD_TRY(cuda::require_device(kernel->device));
    return Engine::launch(kernel->prepared, filled, stream);
  });
}

}  // namespace

chord_status_t chord_launch_indexed(chord_kernel_t kernel, const chord_gemm_arguments_t* arguments,
                                    const chord_indexed_routing_t* routing, void* stream) {
  return launch("chord_launch_indexed", kernel, arguments, routing, stream);
}

chord_status_t chord_launch_contiguous(chord_kernel_t kernel,
                                       const chord_gemm_arguments_t* arguments,
                                       const chord_contiguous_routing_t* routing, void* stream) {
  return launch("chord_launch_contiguous", kernel, arguments, routing, stream);
}

chord_status_t chord_launch_masked(chord_kernel_t kernel, const chord_gemm_arguments_t* arguments,
                                   const chord_masked_routing_t* routing, void* stream) {
  return launch("chord_launch_masked", kernel, arguments, routing, stream);
}
