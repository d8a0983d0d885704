// wgmma.mma_async.m64nNk16, BF16 in, FP32 out: A in registers, B in shared memory, sums added to or
// begun anew.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A warp holds 16 of the 64 rows, as
// the A fragment of mma.m16n8k16; its sums of every n8 step are the C fragment of the same.
//
// Registers of a wgmma in flight are the hardware's: fence() before the first one that touches
// registers written by other instructions, wait() before they are read or written again.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device::ptx {

using abi::i32;
using abi::u32;

inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <i32 Pending>
inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// The low half of the descriptor of B: 64 columns k (128 bytes) per row, rows one after the other,
// 128-byte swizzle, on an address that is a multiple of 1024. PTX ISA, "Matrix Descriptor Format":
// start address / 16, leading offset (not used by this mode). The k16 step j begins 32 bytes
// further: add 2 j. The high half, stride of eight rows / 16 = 64 and swizzle mode 1, is a constant
// of the instruction below, which costs ptxas no register.
inline u32 wgmma_descriptor_swizzle_128(u32 shared_address) {
  return (1u << 16) | (shared_address >> 4);
}

// Registers and operands of 1, 2, ... n8 steps.
#define CHORD_R1 "%0, %1, %2, %3"
#define CHORD_R2 CHORD_R1 ", %4, %5, %6, %7"
#define CHORD_R3 CHORD_R2 ", %8, %9, %10, %11"
#define CHORD_R4 CHORD_R3 ", %12, %13, %14, %15"
#define CHORD_R5 CHORD_R4 ", %16, %17, %18, %19"
#define CHORD_R6 CHORD_R5 ", %20, %21, %22, %23"
#define CHORD_R7 CHORD_R6 ", %24, %25, %26, %27"
#define CHORD_R8 CHORD_R7 ", %28, %29, %30, %31"
#define CHORD_R9 CHORD_R8 ", %32, %33, %34, %35"
#define CHORD_R10 CHORD_R9 ", %36, %37, %38, %39"
#define CHORD_R11 CHORD_R10 ", %40, %41, %42, %43"
#define CHORD_R12 CHORD_R11 ", %44, %45, %46, %47"
#define CHORD_R13 CHORD_R12 ", %48, %49, %50, %51"
#define CHORD_R14 CHORD_R13 ", %52, %53, %54, %55"
#define CHORD_R15 CHORD_R14 ", %56, %57, %58, %59"
#define CHORD_R16 CHORD_R15 ", %60, %61, %62, %63"
#define CHORD_R17 CHORD_R16 ", %64, %65, %66, %67"
#define CHORD_R18 CHORD_R17 ", %68, %69, %70, %71"
#define CHORD_R19 CHORD_R18 ", %72, %73, %74, %75"
#define CHORD_R20 CHORD_R19 ", %76, %77, %78, %79"
#define CHORD_R21 CHORD_R20 ", %80, %81, %82, %83"
#define CHORD_R22 CHORD_R21 ", %84, %85, %86, %87"
#define CHORD_R23 CHORD_R22 ", %88, %89, %90, %91"
#define CHORD_R24 CHORD_R23 ", %92, %93, %94, %95"
#define CHORD_R25 CHORD_R24 ", %96, %97, %98, %99"
#define CHORD_R26 CHORD_R25 ", %100, %101, %102, %103"
#define CHORD_R27 CHORD_R26 ", %104, %105, %106, %107"
#define CHORD_R28 CHORD_R27 ", %108, %109, %110, %111"
#define CHORD_R29 CHORD_R28 ", %112, %113, %114, %115"
#define CHORD_R30 CHORD_R29 ", %116, %117, %118, %119"
#define CHORD_R31 CHORD_R30 ", %120, %121, %122, %123"
#define CHORD_R32 CHORD_R31 ", %124, %125, %126, %127"
#define CHORD_D(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define CHORD_D1 CHORD_D(0)
#define CHORD_D2 CHORD_D1, CHORD_D(1)
#define CHORD_D3 CHORD_D2, CHORD_D(2)
#define CHORD_D4 CHORD_D3, CHORD_D(3)
#define CHORD_D5 CHORD_D4, CHORD_D(4)
#define CHORD_D6 CHORD_D5, CHORD_D(5)
#define CHORD_D7 CHORD_D6, CHORD_D(6)
#define CHORD_D8 CHORD_D7, CHORD_D(7)
#define CHORD_D9 CHORD_D8, CHORD_D(8)
#define CHORD_D10 CHORD_D9, CHORD_D(9)
#define CHORD_D11 CHORD_D10, CHORD_D(10)
#define CHORD_D12 CHORD_D11, CHORD_D(11)
#define CHORD_D13 CHORD_D12, CHORD_D(12)
#define CHORD_D14 CHORD_D13, CHORD_D(13)
#define CHORD_D15 CHORD_D14, CHORD_D(14)
#define CHORD_D16 CHORD_D15, CHORD_D(15)
#define CHORD_D17 CHORD_D16, CHORD_D(16)
#define CHORD_D18 CHORD_D17, CHORD_D(17)
#define CHORD_D19 CHORD_D18, CHORD_D(18)
#define CHORD_D20 CHORD_D19, CHORD_D(19)
#define CHORD_D21 CHORD_D20, CHORD_D(20)
#define CHORD_D22 CHORD_D21, CHORD_D(21)
#define CHORD_D23 CHORD_D22, CHORD_D(22)
#define CHORD_D24 CHORD_D23, CHORD_D(23)
#define CHORD_D25 CHORD_D24, CHORD_D(24)
#define CHORD_D26 CHORD_D25, CHORD_D(25)
#define CHORD_D27 CHORD_D26, CHORD_D(26)
#define CHORD_D28 CHORD_D27, CHORD_D(27)
#define CHORD_D29 CHORD_D28, CHORD_D(28)
#define CHORD_D30 CHORD_D29, CHORD_D(29)
#define CHORD_D31 CHORD_D30, CHORD_D(30)
#define CHORD_D32 CHORD_D31, CHORD_D(31)

#define CHORD_WGMMA(Steps, N, A0, A1, A2, A3, B, P)                                         \
  if constexpr (kSteps == Steps)                                                            \
  asm volatile("{\n .reg .pred p;\n .reg .b64 b;\n setp.ne.u32 p, %" #P                     \
               ", 0;\n"                                                                     \
               " mov.b64 b, {%" #B                                                          \
               ", 0x40000040};\n"                                                           \
               " wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" CHORD_R##Steps \
               "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, b, p, 1, 1, 0;\n}"             \
               : CHORD_D##Steps                                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(Adds ? 1 : 0))

// d += a * b, or d = a * b; `b` is the low half of the descriptor of N = 8 * kSteps rows.
template <i32 kSteps, bool Adds = true>
inline void wgmma_m64k16_bf16(float (&d)[kSteps][4], const u32 (&a)[4], u32 b) {
  static_assert(kSteps >= 1 && kSteps <= 32);
  CHORD_WGMMA(1, 8, 4, 5, 6, 7, 8, 9);
  CHORD_WGMMA(2, 16, 8, 9, 10, 11, 12, 13);
  CHORD_WGMMA(3, 24, 12, 13, 14, 15, 16, 17);
  CHORD_WGMMA(4, 32, 16, 17, 18, 19, 20, 21);
  CHORD_WGMMA(5, 40, 20, 21, 22, 23, 24, 25);
  CHORD_WGMMA(6, 48, 24, 25, 26, 27, 28, 29);
  CHORD_WGMMA(7, 56, 28, 29, 30, 31, 32, 33);
  CHORD_WGMMA(8, 64, 32, 33, 34, 35, 36, 37);
  CHORD_WGMMA(9, 72, 36, 37, 38, 39, 40, 41);
  CHORD_WGMMA(10, 80, 40, 41, 42, 43, 44, 45);
  CHORD_WGMMA(11, 88, 44, 45, 46, 47, 48, 49);
  CHORD_WGMMA(12, 96, 48, 49, 50, 51, 52, 53);
  CHORD_WGMMA(13, 104, 52, 53, 54, 55, 56, 57);
  CHORD_WGMMA(14, 112, 56, 57, 58, 59, 60, 61);
  CHORD_WGMMA(15, 120, 60, 61, 62, 63, 64, 65);
  CHORD_WGMMA(16, 128, 64, 65, 66, 67, 68, 69);
  CHORD_WGMMA(17, 136, 68, 69, 70, 71, 72, 73);
  CHORD_WGMMA(18, 144, 72, 73, 74, 75, 76, 77);
  CHORD_WGMMA(19, 152, 76, 77, 78, 79, 80, 81);
  CHORD_WGMMA(20, 160, 80, 81, 82, 83, 84, 85);
  CHORD_WGMMA(21, 168, 84, 85, 86, 87, 88, 89);
  CHORD_WGMMA(22, 176, 88, 89, 90, 91, 92, 93);
  CHORD_WGMMA(23, 184, 92, 93, 94, 95, 96, 97);
  CHORD_WGMMA(24, 192, 96, 97, 98, 99, 100, 101);
  CHORD_WGMMA(25, 200, 100, 101, 102, 103, 104, 105);
  CHORD_WGMMA(26, 208, 104, 105, 106, 107, 108, 109);
  CHORD_WGMMA(27, 216, 108, 109, 110, 111, 112, 113);
  CHORD_WGMMA(28, 224, 112, 113, 114, 115, 116, 117);
  CHORD_WGMMA(29, 232, 116, 117, 118, 119, 120, 121);
  CHORD_WGMMA(30, 240, 120, 121, 122, 123, 124, 125);
  CHORD_WGMMA(31, 248, 124, 125, 126, 127, 128, 129);
  CHORD_WGMMA(32, 256, 128, 129, 130, 131, 132, 133);
}

#undef CHORD_WGMMA
#undef CHORD_D

}  // namespace chord::device::ptx
