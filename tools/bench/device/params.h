// Parameters of the helper kernels of the bench and of the GPU tests: the same bytes on both sides.
// Every kernel is an entry of its own, launched on a grid of one dimension.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::bench {

using abi::i32;
using abi::i64;
using abi::u16;
using abi::u32;
using abi::u64;
using abi::u8;

// A BF16 NaN with a payload that no arithmetic makes: what an output holds before a launch.
inline constexpr u16 kPoison = 0xFFA5;

// Checkpoint words of eight codes each.
struct FillCodesParams {
  u32* words;
  i64 count;
  u64 seed;
  i32 fifteen_codes;  // 1: code 0 never appears, as in the Kimi checkpoints
};

// BF16 scales: uniform in [low, high], or of either sign with exponents drawn from
// [min_exponent, max_exponent].
struct FillScalesParams {
  u16* scales;
  i64 count;
  u64 seed;
  float low, high;
  i32 is_wide;
  i32 min_exponent, max_exponent;
};

// Standard normal BF16 values.
struct FillActivationsParams {
  u16* values;
  i64 count;
  u64 seed;
};

inline constexpr i32 kReferenceRows = 8;  // rows that one thread computes together
inline constexpr i32 kReferenceThreads = 128;

// Neighbouring entries of the row list, all of one expert.
struct ReferenceTile {
  i32 expert;
  i32 first;
  i32 rows;  // 1 to kReferenceRows
};

struct ReferenceParams {
  const u32* words;        // checkpoint words [E, N, K/8]
  const u16* scales;       // BF16 [E, N, K/32]
  const u16* activations;  // BF16 [rows, K]
  const i32* sources;      // row of activations, per entry of the list
  const ReferenceTile* tiles;
  float* expected;  // [entries, N]
  i32 n;
  i32 k;
  i32 column_blocks;  // ceil(N / kReferenceThreads); grid: tiles * column_blocks
};

inline constexpr i32 kFinishThreads = 128;

// Row weights, or SwiGLU of N / 2 gates and as many ups where there are none.
struct FinishParams {
  float* expected;           // [entries, N]
  const i32* out_rows;       // row of output, per entry
  const float* row_weights;  // per row of output, or null
  i32 n;
  i32 columns;        // that are left: N, or N / 2
  i32 column_blocks;  // ceil(columns / kFinishThreads); grid: entries * column_blocks
};

struct RowError {
  double difference;  // sum of squares of output - expected
  double norm;        // sum of squares of expected
  i32 outliers;       // further than 2 BF16 ulps + 1e-2 * row RMS
  i32 unwritten;      // still poison
  i32 non_finite;     // finite where NaN or Inf is expected, or the other way round
  i32 reserved;
};

inline constexpr i32 kCompareThreads = 256;

// One block per entry of the row list.
struct CompareParams {
  const float* expected;
  const u16* output;    // BF16 [rows, N]
  const i32* out_rows;  // row of output, per entry
  RowError* errors;
  i32 n;
  i32 expected_pitch;  // of rows of `expected`
};

// One block per row of the output: counts elements of rows nobody owns that are not poison.
struct ChangedParams {
  const u16* output;
  const u8* is_owned;
  u64* changed;
  i32 n;
};

inline constexpr i32 kReadRegions = 4;
inline constexpr i32 kReadCtas = 1056;
inline constexpr i32 kReadThreads = 256;

// Reads memory and does nothing with it.
struct ReadParams {
  const void* from[kReadRegions];
  i64 chunks[kReadRegions];  // of 16 bytes
  u32* sink;
};

}  // namespace chord::bench
