// The one call that enqueues a kernel.
#include "src/launch/launch.h"

namespace chord::launch {

Status enqueue(const cuda::DriverApi& driver, cuda::CUfunction function, const Grid& grid,
               const void* params, cuda::CUstream stream) {
  cuda::CUlaunchAttribute attribute{};
  attribute.id = cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  cuda::CUlaunchConfig config{};
  config.gridDimX = grid.ctas;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = grid.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = grid.shared_bytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = grid.programmatic_dependent_launch ? 1 : 0;
  void* parameters[] = {const_cast<void*>(params)};
  const cuda::CUresult result = driver.launch_kernel_ex(&config, function, parameters, nullptr);
  if (result == cuda::CUDA_SUCCESS) return {};
  return cuda::check(result, "enqueue the kernel");
}

}  // namespace chord::launch
