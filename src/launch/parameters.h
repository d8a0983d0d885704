// From the arguments of a launch to the parameter struct of the kernel. Refuses what can be seen to
// be wrong without reading device memory. Allocates nothing when all is well.
#pragma once

#include <string_view>

#include "chord/arguments.h"
#include "chord/schedule.h"
#include "src/cuda/driver_api.h"

namespace chord::launch {

// What launch knows of a prepared kernel.
struct LaunchShape {
  abi::Problem problem;
  KernelSchedule schedule;
  int ctas = 0;  // persistent CTAs of one launch
};

std::size_t workspace_flag_bytes(const LaunchShape& shape);
std::size_t workspace_bytes(const LaunchShape& shape);

// Everything but the tensor maps.
Status fill_params(const LaunchShape& shape, const GemmArguments& arguments,
                   abi::GemmParams& params);

// The two tensor maps of a packed weight. Pure host work of the driver library.
Status encode_tensor_maps(const cuda::DriverApi& driver, const LaunchShape& shape,
                          const PackedWeight& weight, abi::GemmParams& params);

}  // namespace chord::launch
