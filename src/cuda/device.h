// The GPU of the current CUDA context, and primary contexts for tools and tests. The library itself
// works in whatever context the caller has made current and never makes one.
#pragma once

#include <string>

#include "chord/descriptor.h"
#include "src/cuda/driver_api.h"

namespace chord::cuda {

struct Device {
  int ordinal = 0;
  int major = 0, minor = 0;
  int num_sms = 0;
  Architecture arch = Architecture::sm_90a;
  std::string name;

  bool operator==(const Device&) const = default;
};

// What tells the current context from every other one of this process, also from one that had the
// same address and is gone. Errors: no driver; no context is current.
using ContextId = unsigned long long;
Result<ContextId> current_context_id();

// The device of the current context. Errors: no driver; no context is current; an architecture
// that this library has no kernels for.
Result<Device> current_device();
Result<Device> current_device(const DriverApi& driver);

// Refuses a current context of another GPU than `ordinal`, by both numbers; below 0: any will do,
// and nothing is asked. Allocates nothing when all is well.
Status require_device(int ordinal);
Status require_device(const DriverApi& driver, int ordinal);

// Keeps a device's primary context retained and current on this thread; the destructor restores
// what was current before.
class Context {
 public:
  Context(Context&& other) noexcept;
  Context& operator=(Context&& other) noexcept;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  CUcontext handle() const { return context_; }

 private:
  friend Result<Context> retain_primary_context(int ordinal);
  Context(const DriverApi* driver, CUdevice device, CUcontext context, CUcontext previous)
      : driver_(driver), device_(device), context_(context), previous_(previous) {}
  void release();

  const DriverApi* driver_ = nullptr;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUcontext previous_ = nullptr;
};

Result<Context> retain_primary_context(int ordinal);

}  // namespace chord::cuda
