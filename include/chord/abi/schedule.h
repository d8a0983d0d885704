// The kernel fields of a schedule: the shape of the code. It travels to NVRTC as a structural
// template argument written with designated initializers, so a misspelt field is a compile error
// and a failing assertion prints the schedule by value. The functions below serve solver (reject),
// launcher (request) and kernel (assert), so the three can not drift apart.
#pragma once

#include "chord/abi/layout.h"
#include "chord/abi/scalar.h"

namespace chord::abi {

enum class Mainloop : i32 {
  mma = 0,       // mma.sync.m16n8k16, operands swapped: weights are A, activations are B
  wgmma = 1,     // wgmma.m64nNk16, weights in registers (A), activations in shared memory (B); SM90
  resident = 2,  // wgmma; the rows of a tile stay in shared memory, whole, while the weights of all
                 // columns pass by in panels of tile_n; for small K
};

enum class Dequantisation : i32 {
  fused = 0,        // (code - 8) * scale in one BF16 fma on subnormal carriers; output times 2^14
  ordinary = 1,     // carrier 0x4300, subtract 136, multiply by the scale in BF16
  accumulator = 2,  // carrier 0x4300, subtract 136; scale applied to FP32 accumulators per group
};

enum class Split : i32 {
  whole_tiles = 0,  // a CTA owns whole output tiles
  even = 1,         // units weighted by cost, cut into equal consecutive ranges along K
  automatic = 2,    // mma: whole tiles when every expert has <= 8 or exactly 16 rows and they fill
                    // the waves of CTAs, even otherwise. wgmma: whole tiles in turn, so that CTAs
                    // work side by side on few experts; the last one or two waves even. resident:
                    // even, along the columns; the last tenth in short ranges for whoever is free
};

// Who of a consumer warp hands a stage back to the producer.
enum class Release : i32 {
  elected_lane = 0,  // lane 0 after __syncwarp, which orders the warp's reads before its arrive
  every_lane = 1,    // 1 % slower; compute-sanitizer racecheck does not see the order of the other
};

// What becomes of a tile's sums before they are rounded to BF16 and stored.
enum class Epilogue : i32 {
  none = 0,
  swiglu = 1,    // weights packed in RowOrder::gate_up: silu(gate) * up, N / 2 output columns
  weighted = 2,  // every output row times its FP32 weight (of top-k routing)
};

struct Schedule {
  Mainloop mainloop = Mainloop::mma;
  i32 block_m = 8;   // rows of one routing block (indexed), alignment of the caller
  i32 tile_m = 16;   // most activation rows of one tile; blocks of one expert are merged to it
  i32 tile_n = 512;  // weight rows of one tile: 128, 256 or 512; resident, of a panel: 64 or 128
  i32 widths = 1;    // not mma: compiled tile widths: tile_m, tile_m - width_step, ...
  i32 width_step = 8;
  i32 slices_per_stage = 2;  // k64 slices of one pipeline stage; resident: all of K
  i32 stages = 3;
  Dequantisation dequantisation = Dequantisation::fused;
  Split split = Split::automatic;
  Release release = Release::elected_lane;
  Epilogue epilogue = Epilogue::none;

  constexpr bool operator==(const Schedule&) const = default;
};

inline constexpr i32 kConsumerWarps = 8;
inline constexpr i32 kConsumerGroups = 2;  // warpgroups
inline constexpr i32 kProducerWarps =
    4;  // a whole warpgroup, so that setmaxnreg can move registers
inline constexpr i32 kMaxSegments = 512;  // experts (or runs of blocks) planned at a time
// Dynamic, of one CTA: 227 KB less the kernel's statics.
inline constexpr i32 kMaxSharedBytes = 232448 - 1024;
inline constexpr i32 kMaxWidths = 4;
inline constexpr i32 kMaxRowBuffers = 2;  // more bind a CTA to more work ahead

// Whether tensor cores read the activations from shared memory: wgmma.
constexpr bool uses_wgmma(const Schedule& s) { return s.mainloop != Mainloop::mma; }
// Whether a warpgroup has a stage, a panel of columns, for itself.
constexpr bool is_resident(const Schedule& s) { return s.mainloop == Mainloop::resident; }

// Of one thread. mma: at 96 ptxas spills, and at 80 where every group has fresh accumulators
// besides. wgmma and resident: at 144 it spills.
constexpr i32 max_accumulators(const Schedule& s) {
  if (uses_wgmma(s)) return 128;
  return s.dequantisation == Dequantisation::accumulator ? 64 : 80;
}

constexpr i32 threads(const Schedule&) { return 32 * (kConsumerWarps + kProducerWarps); }
// Consumer warps that share the columns of a stage.
constexpr i32 warps_of_stage(const Schedule& s) {
  return is_resident(s) ? kConsumerWarps / kConsumerGroups : kConsumerWarps;
}
// Strips of 16 weight rows of one consumer warp.
constexpr i32 warp_strips(const Schedule& s) { return s.tile_n / (kStripRows * warps_of_stage(s)); }
constexpr i32 smallest_width(const Schedule& s) { return s.tile_m - (s.widths - 1) * s.width_step; }
// The compiled width that rows of a tile take.
constexpr i32 width_of(const Schedule& s, i32 rows) {
  const i32 smallest = smallest_width(s);
  if (rows <= smallest) return smallest;
  return smallest + (rows - smallest + s.width_step - 1) / s.width_step * s.width_step;
}

constexpr i64 activation_stage_bytes(const Schedule& s) {
  if (is_resident(s)) return 0;
  return static_cast<i64>(s.slices_per_stage) * s.tile_m * (kAtomDepth * 2);
}
constexpr i64 weight_stage_bytes(const Schedule& s) {
  return static_cast<i64>(s.slices_per_stage) * (s.tile_n / kAtomRows) * kAtomBytes;
}
constexpr i64 scale_stage_bytes(const Schedule& s) {
  return static_cast<i64>(s.slices_per_stage) * (s.tile_n / kAtomRows) * kAtomScaleBytes;
}
constexpr i64 stage_bytes(const Schedule& s) {
  return round_up(activation_stage_bytes(s) + weight_stage_bytes(s) + scale_stage_bytes(s), 1024);
}
// One record per stage and one more: kernels/tile/pipeline.cuh shows that this is enough. resident:
// room for one per buffer and one more.
constexpr i64 tile_record_bytes(const Schedule& s) {
  return 64 + (is_resident(s) ? 4 : 8) * static_cast<i64>(s.tile_m);
}
constexpr i32 max_records(const Schedule& s) {
  return is_resident(s) ? kMaxRowBuffers + 1 : s.stages + 1;
}
constexpr i64 segment_table_bytes() { return kMaxSegments * (2 * 8 + 4 * 4) + 64; }
// wgmma: where tiles and shares of CTAs begin.
inline constexpr i32 kMaxCtas = 256;
constexpr i64 wave_table_bytes(const Schedule& s) {
  return s.mainloop == Mainloop::wgmma ? kMaxSegments * 4 + (kMaxCtas + 1) * 8 + 24 : 0;
}
// Full and empty, and one; wgmma: landed of every stage, written of every record; resident: full
// and empty of every buffer of rows.
constexpr i64 barrier_bytes(const Schedule& s) {
  const i32 more = s.mainloop == Mainloop::wgmma ? 2 * s.stages + 1
                   : is_resident(s)              ? 3 * kMaxRowBuffers + 1
                                                 : 0;
  return round_up(8 * (2 * s.stages + 1 + more), 64);
}

// Where wgmma's sums are turned round before they are stored, by one warp or, resident, by the four
// of a panel: rows of their columns and 16 bytes more, which keeps them out of each other's banks.
constexpr i32 store_warps(const Schedule& s) { return is_resident(s) ? warps_of_stage(s) : 1; }
constexpr i32 staging_rows(const Schedule& s) {
  if (!is_resident(s)) return 32;
  return s.tile_n == 64 ? 104 : 56;  // tiles of 208 and 112 rows in two turns
}
constexpr i64 staging_row_bytes(const Schedule& s) {
  return warp_strips(s) * store_warps(s) * 32 + 16;
}
constexpr i64 staging_bytes(const Schedule& s) {
  if (!uses_wgmma(s)) return 0;
  return round_up(kConsumerWarps / store_warps(s) * staging_rows(s) * staging_row_bytes(s), 128);
}

// FP32 sums of one tile, as they lie in the workspace.
constexpr i64 partial_bytes(const Schedule& s) {
  return is_resident(s) ? 0 : static_cast<i64>(s.tile_m) * s.tile_n * 4;
}

constexpr i64 shared_bytes_of_ring(const Schedule& s) {
  return round_up(s.stages * stage_bytes(s) + barrier_bytes(s) +
                      max_records(s) * tile_record_bytes(s) + segment_table_bytes() +
                      wave_table_bytes(s) + staging_bytes(s),
                  128);
}
// resident: the rows of a tile, and as many tiles as fit beside the stages.
constexpr i64 row_buffer_bytes(const Schedule& s) {
  return is_resident(s) ? static_cast<i64>(s.slices_per_stage) * s.tile_m * (kAtomDepth * 2) : 0;
}
constexpr i32 row_buffers(const Schedule& s) {
  if (!is_resident(s)) return 0;
  const i64 fit = (kMaxSharedBytes - shared_bytes_of_ring(s)) / row_buffer_bytes(s);
  return static_cast<i32>(max_of(1, min_of(fit, kMaxRowBuffers)));
}
constexpr i64 shared_bytes_without_partial(const Schedule& s) {
  return shared_bytes_of_ring(s) + row_buffers(s) * row_buffer_bytes(s);
}
// Room for one partial, which is fetched while its tile is still multiplied. Where it does not fit,
// partials are read from the workspace when they are added.
constexpr i64 fetched_partial_bytes(const Schedule& s) {
  const bool fits = shared_bytes_without_partial(s) + partial_bytes(s) <= kMaxSharedBytes;
  const bool can = s.mainloop == Mainloop::mma && s.split != Split::whole_tiles;
  return can && fits ? partial_bytes(s) : 0;
}
constexpr i64 shared_bytes(const Schedule& s) {
  return shared_bytes_without_partial(s) + fetched_partial_bytes(s);
}

// FP32 accumulators of one consumer thread.
constexpr i32 accumulators_per_thread(const Schedule& s) {
  return s.tile_m * s.tile_n / (32 * warps_of_stage(s));
}

constexpr bool has_legal_tile(const Schedule& s) {
  if (s.tile_m < 8 || s.tile_m % 8 != 0) return false;
  if (s.mainloop == Mainloop::resident) {
    if (s.tile_n != 64 && s.tile_n != 128) return false;
  } else if (s.tile_n != 128 && s.tile_n != 256 && s.tile_n != 512) {
    return false;
  }
  if (s.mainloop == Mainloop::mma) return s.tile_m <= 64 && s.widths == 1 && s.width_step == 8;
  return (s.mainloop == Mainloop::wgmma || s.mainloop == Mainloop::resident) &&
         s.dequantisation != Dequantisation::accumulator && s.tile_m <= 256 && s.widths >= 1 &&
         s.widths <= kMaxWidths && s.width_step >= 8 && s.width_step % 8 == 0 &&
         smallest_width(s) >= 8;
}
// resident: a stage belongs to one warpgroup, so both have as many.
constexpr bool has_legal_stages(const Schedule& s) {
  if (s.stages < 2) return false;
  return is_resident(s) ? s.stages <= 16 && s.stages % kConsumerGroups == 0 : s.stages <= 8;
}

// A wgmma warp stores the columns of two strips together, and swiglu makes one of two.
constexpr bool has_legal_epilogue(const Schedule& s) {
  return s.epilogue != Epilogue::swiglu || s.mainloop == Mainloop::mma ||
         (s.mainloop == Mainloop::wgmma && warp_strips(s) % 2 == 0);
}
// Of output of `n` columns of sums.
constexpr i32 output_columns(const Schedule& s, i32 n) {
  return s.epilogue == Epilogue::swiglu ? n / 2 : n;
}

constexpr bool is_well_formed(const Schedule& s) {
  return has_legal_tile(s) && has_legal_epilogue(s) && s.block_m >= 8 && s.block_m <= 256 &&
         s.block_m % 8 == 0 && s.slices_per_stage >= 1 && s.slices_per_stage <= 4 &&
         has_legal_stages(s) && accumulators_per_thread(s) <= max_accumulators(s) &&
         shared_bytes(s) <= kMaxSharedBytes;
}

// Scratch of one launch: FP32 partials of one tile per CTA, and one flag per consumer warp and CTA.
// resident: two of the flags are counters, and there are no partials.
constexpr i64 workspace_flag_bytes(i64 ctas) { return round_up(ctas * kConsumerWarps * 4, 256); }
constexpr i64 workspace_bytes(const Schedule& s, i64 ctas) {
  return workspace_flag_bytes(ctas) + ctas * partial_bytes(s);
}

}  // namespace chord::abi
