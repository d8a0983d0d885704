// Asynchronous copies from global to shared memory. PTX ISA, "Data Movement: cp.async,
// cp.async.bulk.tensor".
#pragma once

#include "chord/abi/params.h"

namespace chord::device::ptx {

using abi::i32;
using abi::TensorMap;
using abi::u32;
using abi::u64;

inline void prefetch_tensormap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

inline u64 createpolicy_evict_first() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

inline void cp_async_bulk_tensor_3d(u32 destination, const TensorMap* map, i32 c0, i32 c1, i32 c2,
                                    u32 barrier, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "l"(policy)
      : "memory");
}

inline void cp_async_bulk_tensor_3d(u32 destination, const TensorMap* map, i32 c0, i32 c1, i32 c2,
                                    u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}

// Into the L2 only.
inline void cp_async_bulk_prefetch_tensor_3d(const TensorMap* map, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(c0),
               "r"(c1), "r"(c2)
               : "memory");
}

// Contiguous bytes; addresses and size are multiples of 16.
inline void cp_async_bulk(u32 destination, const void* source, u32 bytes, u32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

inline void cp_async_bulk_prefetch(const void* source, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}

// The L2 fetches the whole 128 bytes. Nothing, and no branch, unless `wanted`.
inline void cp_async_16_of_128_if(bool wanted, u32 destination, const void* source) {
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n"
      " @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n}" ::"r"(destination),
      "l"(source), "r"(static_cast<u32>(wanted))
      : "memory");
}

inline void cp_async_16(u32 destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(destination), "l"(source)
               : "memory");
}

// Writes 16 zero bytes; `source` is not read.
inline void cp_async_16_zero(u32 destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" ::"r"(destination), "l"(source)
               : "memory");
}

// Arrives on the barrier when every earlier cp.async of this thread has landed; the expected count
// of the barrier already includes it.
inline void cp_async_mbarrier_arrive_noinc(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace chord::device::ptx
