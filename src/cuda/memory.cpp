// Owned device memory, events and streams on the driver's table.
#include "src/cuda/memory.h"

#include <fmt/format.h>

namespace chord::cuda {

Result<DeviceBuffer> DeviceBuffer::allocate(std::size_t bytes) {
  CHORD_TRY(const DriverApi* driver, driver_api());
  if (bytes == 0) return DeviceBuffer(driver, 0, 0);
  CUdeviceptr address = 0;
  CHORD_TRY(check(driver->mem_alloc(&address, bytes),
                  fmt::format("allocate {} B of device memory", bytes)));
  return DeviceBuffer(driver, address, bytes);
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) driver_->mem_free(address_);
}

void DeviceBuffer::swap(DeviceBuffer& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

Status DeviceBuffer::check_range(const char* what, std::size_t bytes, std::size_t offset) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} {} B at offset {} of a device buffer", what, bytes, offset),
               fmt::format("the buffer has {} B", bytes_), ""};
}

Status DeviceBuffer::upload(const void* from, std::size_t bytes, std::size_t offset) {
  CHORD_TRY(check_range("write", bytes, offset));
  if (bytes == 0) return {};
  return check(driver_->memcpy_htod(address_ + offset, from, bytes),
               fmt::format("copy {} B to the device", bytes));
}

Status DeviceBuffer::download(void* to, std::size_t bytes, std::size_t offset) const {
  CHORD_TRY(check_range("read", bytes, offset));
  if (bytes == 0) return {};
  return check(driver_->memcpy_dtoh(to, address_ + offset, bytes),
               fmt::format("copy {} B from the device", bytes));
}

Status DeviceBuffer::fill(unsigned char byte) {
  if (bytes_ == 0) return {};
  return check(driver_->memset_d8(address_, byte, bytes_),
               fmt::format("fill {} B of device memory", bytes_));
}

Result<OwnedStream> OwnedStream::create() {
  CHORD_TRY(const DriverApi* driver, driver_api());
  CUstream stream = nullptr;
  CHORD_TRY(check(driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "create a CUDA stream"));
  return OwnedStream(driver, stream);
}

OwnedStream::~OwnedStream() {
  if (stream_ != nullptr) driver_->stream_destroy(stream_);
}

Status OwnedStream::synchronize() const {
  return check(driver_->stream_synchronize(stream_), "wait for a CUDA stream");
}

Result<Event> Event::create() {
  CHORD_TRY(const DriverApi* driver, driver_api());
  CUevent event = nullptr;
  CHORD_TRY(check(driver->event_create(&event, CU_EVENT_DEFAULT), "create a CUDA event"));
  return Event(driver, event);
}

Event::~Event() {
  if (event_ != nullptr) driver_->event_destroy(event_);
}

Status Event::record(CUstream stream) const {
  return check(driver_->event_record(event_, stream), "record a CUDA event");
}

Status Event::synchronize() const {
  return check(driver_->event_synchronize(event_), "wait for a CUDA event");
}

Result<double> Event::ms_since(const Event& start) const {
  float ms = 0;
  CHORD_TRY(check(driver_->event_elapsed_time(&ms, start.event_, event_),
                  "read the time between two CUDA events"));
  return static_cast<double>(ms);
}

}  // namespace chord::cuda
