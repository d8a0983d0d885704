// The table of driver calls with a counter before each, for kernels that launch through it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "chord/engine.h"
#include "src/cuda/driver_api.h"
#include "src/prepared_kernel.h"

namespace chord::gpu_test {

// Calls since the last reset, by the driver's names; those that were not called are left out.
std::map<std::string, int> driver_calls();
void reset_driver_calls();

// Attributes of the last launch.
struct LastLaunch {
  unsigned attributes = 0;
  bool is_programmatic = false;
};
LastLaunch last_launch();

// The real driver, counted. Lives as long as the process.
const cuda::DriverApi& counting_driver(const cuda::DriverApi& real);

// The same kernel, launched through the counted table.
PreparedKernel counted(const PreparedKernel& kernel);

}  // namespace chord::gpu_test
