// Lets this thread load and unload modules while some stream is captured into a graph. Under the
// usual global mode such a call fails and spoils the capture, though it puts nothing into it (CUDA
// driver API, cuThreadExchangeStreamCaptureMode).
#pragma once

#include "src/cuda/driver_api.h"

namespace chord::cuda {

class CaptureGuard {
 public:
  explicit CaptureGuard(const DriverApi& driver)
      : driver_(driver),
        is_relaxed_(driver.thread_exchange_stream_capture_mode(&mode_) == CUDA_SUCCESS) {}
  ~CaptureGuard() {
    if (is_relaxed_) driver_.thread_exchange_stream_capture_mode(&mode_);
  }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;

 private:
  const DriverApi& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then what it was before
  bool is_relaxed_;
};

}  // namespace chord::cuda
