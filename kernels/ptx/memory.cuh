// Loads and stores whose width, cache level or ordering matters.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device::ptx {

using abi::i32;
using abi::u16;
using abi::u32;

struct alignas(8) U32x2 {
  u32 x, y;
};
struct alignas(16) U32x4 {
  u32 x, y, z, w;
};
struct alignas(16) F32x4 {
  float x, y, z, w;
};

inline u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

inline U32x4 ld_shared_v4(u32 address) {
  U32x4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}

inline i32 ld_shared_i32(u32 address) {
  i32 v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}

inline F32x4 ld_shared_v4_f32(u32 address) {
  F32x4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address));
  return v;
}

inline U32x2 ld_shared_v2(u32 address) {
  U32x2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
  return v;
}

inline void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// Two and four 8x8 matrices of 16-bit elements, each stored with its columns as rows.
inline void stmatrix_x2_trans(u32 address, u32 r0, u32 r1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(r0), "r"(r1)
               : "memory");
}

inline void stmatrix_x4_trans(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(r0), "r"(r1), "r"(r2), "r"(r3)
      : "memory");
}

// Transposes an 8x8 matrix of 16-bit elements held one row per four lanes.
inline u32 movmatrix_trans(u32 a) {
  u32 d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

// Zeros, and no access, unless `wanted`: a predicate keeps many loads in flight where a branch
// would wait for each.
inline F32x4 ld_global_cg_v4_if(bool wanted, const float* address) {
  F32x4 v{0.0f, 0.0f, 0.0f, 0.0f};
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %5, 0;\n"
      " @p ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
      : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
      : "l"(address), "r"(static_cast<u32>(wanted))
      : "memory");
  return v;
}

inline U32x4 ld_global_v4(const void* address) {
  U32x4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address)
               : "memory");
  return v;
}

inline U32x4 ld_global_v4_if(bool wanted, const void* address) {
  U32x4 v{0, 0, 0, 0};
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %5, 0;\n"
      " @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
      : "l"(address), "r"(static_cast<u32>(wanted))
      : "memory");
  return v;
}

inline float ld_global_cg_f32_if(bool wanted, const float* address) {
  float v = 0.0f;
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n"
      " @p ld.global.cg.f32 %0, [%1];\n}"
      : "+f"(v)
      : "l"(address), "r"(static_cast<u32>(wanted))
      : "memory");
  return v;
}

inline void st_global_cg_v4(float* address, F32x4 v) {
  asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

inline void st_global_v4(void* address, U32x4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

inline void st_global_u32(void* address, u32 v) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

inline i32 ld_acquire_gpu(const i32* address) {
  i32 v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}

inline void st_release_gpu(i32* address, i32 v) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

inline void st_relaxed_gpu(i32* address, i32 v) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

// Orders this thread's view of memory before its own asynchronous copies.
inline void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

inline void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

inline void fence_acq_rel_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

}  // namespace chord::device::ptx
