// Prepared kernels: shared by counting, described by what was loaded.
#include <memory>
#include <utility>

#include "src/c_api/convert.h"
#include "src/c_api/handles.h"
#include "src/cuda/device.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;
using c_api::OutStruct;

chord_status_t chord_prepare(chord_handle_t handle, chord_plan_t plan, chord_kernel_t* kernel) {
  return guarded("chord_prepare", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(plan, "plan"));
    CHORD_TRY(call.need(kernel, "kernel"));
    CHORD_TRY(cuda::require_device(handle->device));
    CHORD_TRY(PreparedKernel prepared, handle->engine.prepare(plan->decision));
    *kernel = new chord_kernel{std::move(prepared), handle->device};
    return {};
  });
}

chord_status_t chord_prepare_gemm(chord_handle_t handle, const chord_gemm_descriptor_t* descriptor,
                                  chord_kernel_t* kernel) {
  return guarded("chord_prepare_gemm", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(call.need(kernel, "kernel"));
    CHORD_TRY(const GemmDescriptor wanted, c_api::descriptor_of(call, descriptor));
    CHORD_TRY(cuda::require_device(handle->device));
    CHORD_TRY(PreparedKernel prepared, handle->engine.prepare(wanted));
    *kernel = new chord_kernel{std::move(prepared), handle->device};
    return {};
  });
}

void chord_kernel_retain(chord_kernel_t kernel) {
  if (kernel != nullptr) kernel->owners.fetch_add(1, std::memory_order_relaxed);
}

void chord_kernel_destroy(chord_kernel_t kernel) {
  if (kernel != nullptr && kernel->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete kernel;
}

chord_status_t chord_kernel_get_info(chord_kernel_t kernel, chord_kernel_info_t* info) {
  return guarded("chord_kernel_get_info", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(kernel, "kernel"));
    CHORD_TRY(const auto out, OutStruct<chord_kernel_info_t>::check(call, info, "info"));
    const PreparedKernel& prepared = kernel->prepared;
    const KernelFacts& facts = prepared.facts();
    chord_kernel_info_t c = chord_kernel_info_init();
    c.key = prepared.key().c_str();
    c.compiler = facts.compiler.c_str();
    c.compile_ms = facts.compile_ms;
    c.workspace_bytes = prepared.workspace_bytes();
    c.workspace_flag_bytes = prepared.workspace_flag_bytes();
    c.shared_bytes = facts.shared_bytes;
    c.block_m = prepared.decision().kernel.block_m;
    c.ctas = prepared.ctas();
    c.threads = facts.threads;
    c.registers = facts.registers;
    c.local_bytes = facts.local_bytes;
    out.write(c);
    return {};
  });
}

chord_status_t chord_kernel_get_plan(chord_kernel_t kernel, chord_plan_t* plan) {
  return guarded("chord_kernel_get_plan", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(kernel, "kernel"));
    CHORD_TRY(call.need(plan, "plan"));
    *plan = new chord_plan{kernel->prepared.decision()};
    return {};
  });
}
