// mma.sync.m16n8k16, BF16 in, FP32 out. PTX ISA, "Warp Level Matrix Instructions: mma".
// Lane = 4g + t. A: a0 (row g, k 2t..), a1 (row g+8), a2 (row g, k 2t+8..), a3 (row g+8, k 2t+8..);
// B: b0 (k 2t.., column g), b1 (k 2t+8..); C: c0 c1 (row g, columns 2t 2t+1), c2 c3 (row g+8).
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device::ptx {

inline void mma_m16n8k16_bf16(float (&d)[4], const abi::u32 (&a)[4], abi::u32 b0, abi::u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace chord::device::ptx
