// Reads the current context's device; retains and releases primary contexts.
#include "src/cuda/device.h"

#include <fmt/format.h>

#include <utility>

namespace chord::cuda {
namespace {

Result<int> attribute(const DriverApi& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  CHORD_TRY(check(driver.device_get_attribute(&value, which, device),
                  fmt::format("read attribute {} of GPU {}", static_cast<int>(which), device)));
  return value;
}

Result<CUcontext> current_context(const DriverApi& driver) {
  CUcontext context = nullptr;
  CHORD_TRY(check(driver.ctx_get_current(&context), "read the current CUDA context"));
  if (context != nullptr) return context;
  return Error{ErrorCode::unavailable, "use the current CUDA context",
               "no context is current on this thread",
               "make one current first: any CUDA runtime or PyTorch CUDA call, or cuCtxSetCurrent"};
}

}  // namespace

Result<ContextId> current_context_id() {
  CHORD_TRY(const DriverApi* driver, driver_api());
  CHORD_TRY(const CUcontext context, current_context(*driver));
  ContextId id = 0;
  CHORD_TRY(check(driver->ctx_get_id(context, &id), "read the id of the current CUDA context"));
  return id;
}

Result<Device> current_device(const DriverApi& driver) {
  CHORD_TRY([[maybe_unused]] const CUcontext context, current_context(driver));
  Device device;
  CUdevice handle = 0;
  CHORD_TRY(check(driver.ctx_get_device(&handle), "read the device of the current CUDA context"));
  // A CUdevice is the ordinal of the device.
  device.ordinal = handle;
  CHORD_TRY(device.major, attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CHORD_TRY(device.minor, attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CHORD_TRY(device.num_sms, attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CHORD_TRY(device.arch, architecture_of(device.major, device.minor));
  char name[256] = {};
  CHORD_TRY(check(driver.device_get_name(name, sizeof(name) - 1, handle),
                  fmt::format("read the name of GPU {}", handle)));
  device.name = name;
  return device;
}

Result<Device> current_device() {
  CHORD_TRY(const DriverApi* driver, driver_api());
  return current_device(*driver);
}

Status require_device(const DriverApi& driver, int ordinal) {
  if (ordinal < 0) return {};
  CHORD_TRY([[maybe_unused]] const CUcontext context, current_context(driver));
  CUdevice current = 0;
  CHORD_TRY(check(driver.ctx_get_device(&current), "read the device of the current CUDA context"));
  if (current == ordinal) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("use a handle of GPU {}", ordinal),
               fmt::format("the current CUDA context belongs to GPU {}", current),
               fmt::format("make a context of GPU {} current, or create a handle for GPU {}",
                           ordinal, current)};
}

Status require_device(int ordinal) {
  if (ordinal < 0) return {};
  CHORD_TRY(const DriverApi* driver, driver_api());
  return require_device(*driver, ordinal);
}

Context::Context(Context&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)),
      device_(other.device_),
      context_(other.context_),
      previous_(other.previous_) {}

Context& Context::operator=(Context&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  device_ = other.device_;
  context_ = other.context_;
  previous_ = other.previous_;
  return *this;
}

Context::~Context() { release(); }

void Context::release() {
  if (driver_ == nullptr) return;
  driver_->ctx_set_current(previous_);
  driver_->device_primary_ctx_release(device_);
  driver_ = nullptr;
}

Result<Context> retain_primary_context(int ordinal) {
  CHORD_TRY(const DriverApi* driver, driver_api());
  int count = 0;
  CHORD_TRY(check(driver->device_get_count(&count), "count the GPUs"));
  if (ordinal < 0 || ordinal >= count)
    return Error{ErrorCode::invalid_argument, fmt::format("use GPU {}", ordinal),
                 fmt::format("this machine has {}", count), "GPUs are numbered from 0"};
  CUdevice device = 0;
  CUcontext previous = nullptr;
  CUcontext context = nullptr;
  const std::string asked = fmt::format("retain the primary context of GPU {}", ordinal);
  CHORD_TRY(check(driver->device_get(&device, ordinal), asked));
  CHORD_TRY(check(driver->ctx_get_current(&previous), asked));
  CHORD_TRY(check(driver->device_primary_ctx_retain(&context, device), asked));
  Context held(driver, device, context, previous);  // releases if the next call fails
  CHORD_TRY(check(driver->ctx_set_current(context), asked));
  return held;
}

}  // namespace chord::cuda
