// Owned device memory, events and streams, for tools and tests. The launch path owns none of these.
#pragma once

#include <cstddef>
#include <utility>

#include "src/cuda/driver_api.h"

namespace chord::cuda {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Zero bytes is a legal, empty buffer.
  static Result<DeviceBuffer> allocate(std::size_t bytes);

  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  // Synchronous copies; `offset` in bytes from the start of the buffer.
  Status upload(const void* from, std::size_t bytes, std::size_t offset = 0);
  Status download(void* to, std::size_t bytes, std::size_t offset = 0) const;
  Status fill(unsigned char byte);

  CUdeviceptr address() const { return address_; }
  void* pointer() const { return reinterpret_cast<void*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceBuffer(const DriverApi* driver, CUdeviceptr address, std::size_t bytes)
      : driver_(driver), address_(address), bytes_(bytes) {}
  void swap(DeviceBuffer& other) noexcept;
  Status check_range(const char* what, std::size_t bytes, std::size_t offset) const;

  const DriverApi* driver_ = nullptr;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
};

class OwnedStream {
 public:
  static Result<OwnedStream> create();  // does not wait for the legacy default stream

  OwnedStream(OwnedStream&& other) noexcept
      : driver_(other.driver_), stream_(std::exchange(other.stream_, nullptr)) {}
  OwnedStream& operator=(OwnedStream&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~OwnedStream();

  Status synchronize() const;
  CUstream handle() const { return stream_; }

 private:
  OwnedStream(const DriverApi* driver, CUstream stream) : driver_(driver), stream_(stream) {}

  const DriverApi* driver_ = nullptr;
  CUstream stream_ = nullptr;
};

class Event {
 public:
  static Result<Event> create();  // with timing

  Event(Event&& other) noexcept
      : driver_(other.driver_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event();

  Status record(CUstream stream) const;
  Status synchronize() const;
  // Both recorded and reached.
  Result<double> ms_since(const Event& start) const;
  CUevent handle() const { return event_; }

 private:
  Event(const DriverApi* driver, CUevent event) : driver_(driver), event_(event) {}

  const DriverApi* driver_ = nullptr;
  CUevent event_ = nullptr;
};

}  // namespace chord::cuda
