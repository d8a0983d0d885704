// Enqueues one kernel. Takes no lock, allocates nothing, reads no file, does not synchronise.
#pragma once

#include "src/cuda/driver_api.h"

namespace chord::launch {

struct Grid {
  unsigned ctas = 1;
  unsigned threads = 1;
  unsigned shared_bytes = 0;
  bool programmatic_dependent_launch = false;
};

// `params` is the kernel's one parameter struct.
Status enqueue(const cuda::DriverApi& driver, cuda::CUfunction function, const Grid& grid,
               const void* params, cuda::CUstream stream);

}  // namespace chord::launch
