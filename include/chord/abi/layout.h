// The one packed layout of INT4 weights: where every nibble and every scale lies.
//
// Weights [E][N/64][K/64] atoms of 2048 B: 4 strips (16 rows n each) x 32 lanes x 16 B.
// Lane = 4g + t. Word j of a lane is the A fragment of k16 step j of mma.sync.m16n8k16 (and of one
// warp's 16 rows of an RS wgmma.m64nNk16): nibble p (bits 4p..4p+3) is the low half of A register
// a_p, nibble p + 4 (bits 16+4p..) its high half:
//   a0 = (row g, k 2t, 2t+1)   a1 = (row g+8, same k)   a2 = (row g, k 2t+8, +9)   a3 = (g+8, same)
// Scales [E][N/64][K/64] of 256 B: [strip][g]{row g: groups 0, 1; row g+8: groups 0, 1}, BF16,
// stored times 2^119 (row g) or 2^115 (row g+8): kernels/tile/dequant.cuh says why. Pure functions:
// the CPU packer, the GPU packer, the kernels and the tests read the same text.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::abi {

inline constexpr i32 kLayoutVersion = 1;
inline constexpr i32 kAtomRows = 64;
inline constexpr i32 kAtomDepth = 64;
inline constexpr i32 kAtomBytes = 2048;      // 64 x 64 codes
inline constexpr i32 kAtomScaleBytes = 256;  // 64 rows x 2 groups of BF16
inline constexpr i32 kStripRows = 16;
inline constexpr i32 kStripBytes = 512;
inline constexpr i32 kStripScaleBytes = 64;
inline constexpr i32 kGroupSize = 32;        // weights per scale along k
inline constexpr i32 kScaleShiftLow = 119;   // rows g of a strip: stored = scale * 2^119
inline constexpr i32 kScaleShiftHigh = 115;  // rows g + 8

// Which row of the checkpoint a packed row holds.
enum class RowOrder : i32 {
  plain = 0,    // the same
  gate_up = 1,  // N / 2 gate rows, then N / 2 up rows: a strip holds 8 gate rows and the 8 up rows
                // that go with them, so that one lane has the sums of both (Epilogue::swiglu)
};

constexpr i64 checkpoint_row(RowOrder order, i64 packed, i64 rows_n) {
  if (order == RowOrder::plain) return packed;
  const i64 pair = packed / kStripRows * 8 + packed % 8;
  return packed % kStripRows < 8 ? pair : rows_n / 2 + pair;
}
constexpr i64 packed_row(RowOrder order, i64 row, i64 rows_n) {
  if (order == RowOrder::plain) return row;
  const i64 pair = row % (rows_n / 2);
  return pair / 8 * kStripRows + pair % 8 + (row < rows_n / 2 ? 0 : 8);
}

struct WeightPlace {
  i64 word = 0;   // index of the 32-bit word from the start of the packed weights
  i32 shift = 0;  // bit position of the nibble inside it
};

// n: packed row inside the expert, k: column.
constexpr WeightPlace weight_place(i64 expert, i64 n, i64 k, i64 rows_n, i64 depth_k) {
  const i64 atom =
      (expert * (rows_n / kAtomRows) + n / kAtomRows) * (depth_k / kAtomDepth) + k / kAtomDepth;
  const i32 row = static_cast<i32>(n % kAtomRows);
  const i32 col = static_cast<i32>(k % kAtomDepth);
  const i32 strip = row / kStripRows;
  const i32 half_row = (row % kStripRows) / 8;  // 0: row g, 1: row g + 8
  const i32 g = row % 8;
  const i32 step = col / 16;
  const i32 half_col = (col % 16) / 8;  // 0: k 2t, 1: k 2t + 8
  const i32 t = (col % 8) / 2;
  const i32 lane = 4 * g + t;
  const i32 reg = half_row + 2 * half_col;
  return {atom * (kAtomBytes / 4) + strip * (kStripBytes / 4) + lane * 4 + step,
          4 * reg + 16 * (col % 2)};
}

// Index of the BF16 scale of (n, group) from the start of the packed scales.
constexpr i64 scale_place(i64 expert, i64 n, i64 group, i64 rows_n, i64 depth_k) {
  const i64 atom =
      (expert * (rows_n / kAtomRows) + n / kAtomRows) * (depth_k / kAtomDepth) + group / 2;
  const i32 row = static_cast<i32>(n % kAtomRows);
  const i32 strip = row / kStripRows;
  const i32 half_row = (row % kStripRows) / 8;
  const i32 g = row % 8;
  return atom * (kAtomScaleBytes / 2) + strip * (kStripScaleBytes / 2) + g * 4 + half_row * 2 +
         group % 2;
}

constexpr i64 packed_weight_bytes(i64 experts, i64 n, i64 k) { return experts * n * (k / 2); }
constexpr i64 packed_scale_bytes(i64 experts, i64 n, i64 k) {
  return experts * n * (k / kGroupSize) * 2;
}

constexpr i32 scale_shift(i64 n) { return n % 16 < 8 ? kScaleShiftLow : kScaleShiftHigh; }

// A BF16 pattern that packs exactly: zero, or finite with 2^-112 <= |s| < 2^9.
constexpr bool is_packable_scale(u16 bits) {
  const i32 exponent = (bits >> 7) & 0xff;
  if ((bits & 0x7fff) == 0) return true;
  return exponent >= 127 - 112 && exponent < 127 + 9;
}

// scale * 2^shift on the BF16 pattern: exact for every packable scale; zero (and its sign) stays.
constexpr u16 transform_scale(u16 bits, i32 shift) {
  if ((bits & 0x7fff) == 0) return bits;
  return static_cast<u16>(bits + (shift << 7));
}

}  // namespace chord::abi
