// From a decision to the text that NVRTC compiles: one entry, `chord_kernel`, with schedule and
// problem as template arguments in designated initializers, every field written.
#pragma once

#include <string>

#include "chord/schedule.h"

namespace chord::source {

abi::Problem problem_of(const GemmDescriptor& descriptor);

std::string gemm_source(const KernelSchedule& schedule, const abi::Problem& problem);

// "indexed_4096x7168_block_m_8.cu": how compiler messages call it.
std::string gemm_source_name(const KernelSchedule& schedule, const abi::Problem& problem);

}  // namespace chord::source
