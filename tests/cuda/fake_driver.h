// A driver table whose answers a test chooses, for a machine without a driver.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/cuda/driver_api.h"

namespace chord::test {

// What the functions of the table read and write; one per test, reset by fake_driver().
struct FakeDriverState {
  cuda::CUcontext current = reinterpret_cast<cuda::CUcontext>(0x10);
  std::map<int, int> device_attributes;
  std::map<int, int> function_attributes;
  cuda::CUresult load_result = cuda::CUDA_SUCCESS;
  std::string entry = "chord_kernel";
  cuda::CUstreamCaptureMode capture_mode = cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;  // of the thread
  cuda::CUstreamCaptureMode mode_of_load =  // or of the last unload
      cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::vector<std::string> calls;
};

inline FakeDriverState fake;

inline void answer_for_contexts(cuda::DriverApi& api) {
  api.ctx_get_current = [](cuda::CUcontext* context) {
    *context = fake.current;
    return cuda::CUDA_SUCCESS;
  };
  api.ctx_push_current = [](cuda::CUcontext context) {
    fake.calls.push_back("push " + std::to_string(reinterpret_cast<std::uintptr_t>(context)));
    return cuda::CUDA_SUCCESS;
  };
  api.ctx_pop_current = [](cuda::CUcontext*) {
    fake.calls.push_back("pop");
    return cuda::CUDA_SUCCESS;
  };
  api.ctx_get_device = [](cuda::CUdevice* device) {
    *device = 3;
    return cuda::CUDA_SUCCESS;
  };
  api.device_get_attribute = [](int* value, cuda::CUdevice_attribute which, cuda::CUdevice) {
    *value = fake.device_attributes[which];
    return cuda::CUDA_SUCCESS;
  };
  api.device_get_name = [](char* name, int length, cuda::CUdevice) {
    std::string("Fake H200").copy(name, static_cast<std::size_t>(length));
    return cuda::CUDA_SUCCESS;
  };
}

inline void answer_for_modules(cuda::DriverApi& api) {
  api.thread_exchange_stream_capture_mode = [](cuda::CUstreamCaptureMode* mode) {
    std::swap(*mode, fake.capture_mode);
    return cuda::CUDA_SUCCESS;
  };
  api.module_load_data = [](cuda::CUmodule* module, const void*) {
    fake.calls.push_back("load");
    fake.mode_of_load = fake.capture_mode;
    *module = reinterpret_cast<cuda::CUmodule>(0x20);
    return fake.load_result;
  };
  api.module_unload = [](cuda::CUmodule) {
    fake.calls.push_back("unload");
    fake.mode_of_load = fake.capture_mode;
    return cuda::CUDA_SUCCESS;
  };
  api.module_get_function = [](cuda::CUfunction* function, cuda::CUmodule, const char* name) {
    if (name != fake.entry) return cuda::CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<cuda::CUfunction>(0x30);
    return cuda::CUDA_SUCCESS;
  };
  api.func_get_attribute = [](int* value, cuda::CUfunction_attribute which, cuda::CUfunction) {
    *value = fake.function_attributes[which];
    return cuda::CUDA_SUCCESS;
  };
  api.func_set_attribute = [](cuda::CUfunction, cuda::CUfunction_attribute which, int value) {
    fake.calls.push_back("set " + std::to_string(which) + " " + std::to_string(value));
    return cuda::CUDA_SUCCESS;
  };
}

// An H200 in a current context, a kernel of 168 registers.
inline const cuda::DriverApi& fake_driver() {
  fake = {};
  fake.device_attributes = {{cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                            {cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                            {cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                            {cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}};
  fake.function_attributes = {{cuda::CU_FUNC_ATTRIBUTE_NUM_REGS, 168},
                              {cuda::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 384}};
  static const cuda::DriverApi api = [] {
    cuda::DriverApi made;
    answer_for_contexts(made);
    answer_for_modules(made);
    return made;
  }();
  return api;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace chord::test
