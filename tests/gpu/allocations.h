// Counts what this thread asks of operator new, in the whole test binary.
#pragma once

#include <cstdint>

namespace chord::gpu_test {

std::int64_t allocations_of_this_thread();

}  // namespace chord::gpu_test
