// How much memory the machine has to spare.
#pragma once

#include <cstdint>

namespace chord::base {

// What can be allocated without swapping: free pages and those of caches that can be dropped
// (MemAvailable of /proc/meminfo), else free pages alone.
std::int64_t free_memory_bytes();

}  // namespace chord::base
