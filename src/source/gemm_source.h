// From a decision to the text that NVRTC compiles: one entry, `chord_kernel`, with schedule and
// problem as template arguments in designated initializers, every field written.
#pragma once

#include <string>

#include "chord/schedule.h"

namespace chord::source {

abi::Problem problem_of(const GemmDescriptor& descriptor);

// Another loop in the place of the mma one, for measurements: a template over the schedule, and the
// device file that has it. Empty: the kernel itself.
struct MainloopText {
  std::string file;
  std::string name;
};

std::string gemm_source(const KernelSchedule& schedule, const abi::Problem& problem,
                        const MainloopText& mainloop = {});

// "indexed_4096x7168_block_m_8.cu": how compiler messages call it.
std::string gemm_source_name(const KernelSchedule& schedule, const abi::Problem& problem);

}  // namespace chord::source
