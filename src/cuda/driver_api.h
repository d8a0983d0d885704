// The CUDA driver, opened at run time: the few types and entry points that this library calls, as
// one table. Nothing opens libcuda before driver_api() is asked for; a build needs no CUDA header.
// Values and signatures are those of the public driver API; must not know what they are used for.
//
//   CHORD_TRY(const DriverApi* driver, driver_api());
//   CHORD_TRY(check(driver->mem_alloc(&pointer, bytes), "allocate 4096 B of device memory"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chord/status.h"

namespace chord::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
inline constexpr CUresult CUDA_ERROR_INVALID_CONTEXT = 201;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
};

inline constexpr unsigned CU_STREAM_DEFAULT = 0;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;

enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};
enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
};
union CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
};
struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};
static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56);

struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};
enum CUtensorMapDataType : int {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
  CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
  CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
  CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
};
enum CUtensorMapInterleave : int { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 };
enum CUtensorMapSwizzle : int {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
};
enum CUtensorMapL2promotion : int {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
};
enum CUtensorMapFloatOOBfill : int { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };

// Every entry point that this library calls: member, symbol with its version, parameters. The
// symbol's version is part of the contract: an unversioned name would be another function.
// clang-format off
#define CHORD_DRIVER_ENTRIES(ENTRY)                                                               \
  ENTRY(init, "cuInit", (unsigned flags))                                                         \
  ENTRY(driver_get_version, "cuDriverGetVersion", (int* version))                                 \
  ENTRY(get_error_name, "cuGetErrorName", (CUresult error, const char** text))                    \
  ENTRY(get_error_string, "cuGetErrorString", (CUresult error, const char** text))                \
  ENTRY(device_get, "cuDeviceGet", (CUdevice* device, int ordinal))                               \
  ENTRY(device_get_count, "cuDeviceGetCount", (int* count))                                       \
  ENTRY(device_get_name, "cuDeviceGetName", (char* name, int length, CUdevice device))            \
  ENTRY(device_get_attribute, "cuDeviceGetAttribute",                                             \
        (int* value, CUdevice_attribute attribute, CUdevice device))                              \
  ENTRY(device_total_mem, "cuDeviceTotalMem_v2", (std::size_t* bytes, CUdevice device))           \
  ENTRY(device_primary_ctx_retain, "cuDevicePrimaryCtxRetain",                                    \
        (CUcontext* context, CUdevice device))                                                    \
  ENTRY(device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))            \
  ENTRY(ctx_get_current, "cuCtxGetCurrent", (CUcontext* context))                                 \
  ENTRY(ctx_get_id, "cuCtxGetId", (CUcontext context, unsigned long long* id))                    \
  ENTRY(ctx_set_current, "cuCtxSetCurrent", (CUcontext context))                                  \
  ENTRY(ctx_push_current, "cuCtxPushCurrent_v2", (CUcontext context))                             \
  ENTRY(ctx_pop_current, "cuCtxPopCurrent_v2", (CUcontext* context))                              \
  ENTRY(ctx_get_device, "cuCtxGetDevice", (CUdevice* device))                                     \
  ENTRY(ctx_synchronize, "cuCtxSynchronize", ())                                                  \
  ENTRY(module_load_data, "cuModuleLoadData", (CUmodule* module, const void* image))              \
  ENTRY(module_unload, "cuModuleUnload", (CUmodule module))                                       \
  ENTRY(module_get_function, "cuModuleGetFunction",                                               \
        (CUfunction* function, CUmodule module, const char* name))                                \
  ENTRY(func_get_attribute, "cuFuncGetAttribute",                                                 \
        (int* value, CUfunction_attribute attribute, CUfunction function))                        \
  ENTRY(func_set_attribute, "cuFuncSetAttribute",                                                 \
        (CUfunction function, CUfunction_attribute attribute, int value))                         \
  ENTRY(launch_kernel_ex, "cuLaunchKernelEx",                                                     \
        (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))     \
  ENTRY(occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",               \
        (int* blocks, CUfunction function, int threads, std::size_t shared_bytes))                \
  ENTRY(stream_create, "cuStreamCreate", (CUstream* stream, unsigned flags))                      \
  ENTRY(stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                  \
  ENTRY(stream_synchronize, "cuStreamSynchronize", (CUstream stream))                             \
  ENTRY(stream_is_capturing, "cuStreamIsCapturing",                                               \
        (CUstream stream, CUstreamCaptureStatus* status))                                         \
  ENTRY(stream_begin_capture, "cuStreamBeginCapture_v2",                                          \
        (CUstream stream, CUstreamCaptureMode mode))                                              \
  ENTRY(thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode",                 \
        (CUstreamCaptureMode * mode))                                                             \
  ENTRY(stream_end_capture, "cuStreamEndCapture", (CUstream stream, CUgraph* graph))              \
  ENTRY(stream_wait_event, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags)) \
  ENTRY(graph_instantiate, "cuGraphInstantiateWithFlags",                                         \
        (CUgraphExec* exec, CUgraph graph, unsigned long long flags))                             \
  ENTRY(graph_get_nodes, "cuGraphGetNodes",                                                       \
        (CUgraph graph, CUgraphNode * nodes, std::size_t * count))                                \
  ENTRY(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))                       \
  ENTRY(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec exec))                             \
  ENTRY(graph_destroy, "cuGraphDestroy", (CUgraph graph))                                         \
  ENTRY(event_create, "cuEventCreate", (CUevent* event, unsigned flags))                          \
  ENTRY(event_record, "cuEventRecord", (CUevent event, CUstream stream))                          \
  ENTRY(event_synchronize, "cuEventSynchronize", (CUevent event))                                 \
  ENTRY(event_elapsed_time, "cuEventElapsedTime", (float* ms, CUevent start, CUevent end))        \
  ENTRY(event_destroy, "cuEventDestroy_v2", (CUevent event))                                      \
  ENTRY(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr* pointer, std::size_t bytes))                    \
  ENTRY(mem_free, "cuMemFree_v2", (CUdeviceptr pointer))                                          \
  ENTRY(mem_get_info, "cuMemGetInfo_v2", (std::size_t* free_bytes, std::size_t* total_bytes))     \
  ENTRY(memcpy_htod, "cuMemcpyHtoD_v2",                                                           \
        (CUdeviceptr to, const void* from, std::size_t bytes))                                    \
  ENTRY(memcpy_dtoh, "cuMemcpyDtoH_v2", (void* to, CUdeviceptr from, std::size_t bytes))          \
  ENTRY(memcpy_htod_async, "cuMemcpyHtoDAsync_v2",                                                \
        (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream))                   \
  ENTRY(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2",                                                \
        (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))                         \
  ENTRY(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2",                                                \
        (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))                   \
  ENTRY(memset_d8, "cuMemsetD8_v2", (CUdeviceptr to, unsigned char value, std::size_t count))     \
  ENTRY(memset_d8_async, "cuMemsetD8Async",                                                       \
        (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream))                \
  ENTRY(memset_d32, "cuMemsetD32_v2", (CUdeviceptr to, unsigned value, std::size_t count))        \
  ENTRY(memset_d32_async, "cuMemsetD32Async",                                                     \
        (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream))                     \
  ENTRY(tensor_map_encode_tiled, "cuTensorMapEncodeTiled",                                        \
        (CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank, void* address,           \
         const std::uint64_t* sizes, const std::uint64_t* strides, const std::uint32_t* box,      \
         const std::uint32_t* element_strides, CUtensorMapInterleave interleave,                  \
         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,                            \
         CUtensorMapFloatOOBfill fill))
// clang-format on

struct DriverApi {
#define CHORD_DRIVER_MEMBER(member, symbol, parameters) CUresult(*member) parameters = nullptr;
  CHORD_DRIVER_ENTRIES(CHORD_DRIVER_MEMBER)
#undef CHORD_DRIVER_MEMBER
  int version = 0;   // 13000: CUDA 13.0
  std::string path;  // of the library
};

// The driver of this process: opened and initialised (cuInit) by the first call, from whichever
// thread; the answer, also an error, holds for the process.
Result<const DriverApi*> driver_api();

// Opens the first library of the list that loads. driver_api() does this with libcuda.so.1.
Result<DriverApi> open_driver(const std::vector<std::string>& libraries);

// Success, or an error of code driver_error with the driver's own name and words.
Status check(CUresult result, std::string_view asked);

// A device address in the form that the driver wants.
inline CUdeviceptr device_address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace chord::cuda
