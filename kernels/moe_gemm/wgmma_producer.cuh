// Who loads for wgmma. One warp walks the work list, writes a record per piece and issues the
// tensor copies: weights, scales, and the rows of a tile where they lie together. Rows of an
// indexed launch lie anywhere: two warps gather them by cp.async, and one publishes what has
// landed.
//
// Ordering of gathered rows. cp.async writes through the generic proxy, wgmma reads shared memory
// through the async proxy, and between the two a proxy fence must lie on the way (PTX ISA, "Memory
// Consistency Model: Causality order", proxy-preserved base causality order, and "membar, fence":
// fence.proxy.async). The gathering lanes' copies arrive on `landed` when they are complete
// (cp.async.mbarrier.arrive.noinc); the publishing lane waits for that phase (acquire), makes the
// fence, and arrives on `full` (release), which consumers acquire before they issue wgmma. One
// fence by one idle lane serves all, where a fence in a consumer costs a MEMBAR per stage; a lane
// that also issues copies is held up by it.
#pragma once

#include "kernels/ptx/copy.cuh"
#include "kernels/routing/pieces.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/record_reader.cuh"
#include "kernels/tile/swizzle.cuh"

namespace chord::device {

inline constexpr i32 kGatherThreads = 64;

template <Problem P>
inline constexpr bool kGathers = P.routing == abi::RoutingKind::indexed;

template <Problem P>
inline constexpr u32 kFillers = kGathers<P> ? 2 : 1;

// The warp that loads.
template <Schedule S, Problem P>
class WgmmaLoader {
  static constexpr WorkShape kShape = WorkShape::of(S, P);
  static constexpr u32 kStageBytes =
      static_cast<u32>(abi::weight_stage_bytes(S) + abi::scale_stage_bytes(S));

 public:
  WgmmaLoader(const GemmParams& p, const Ring<S>& ring, i32 lane)
      : p_(p), ring_(ring), lane_(lane), read_once_(ptx::createpolicy_evict_first()) {}

  // Every piece of this CTA, then the record that ends the window.
  void run(const SegmentTable& table, const CtaWork& work) {
    walk_pieces<true>(
        WorkList(table, kShape), work, static_cast<i32>(blockIdx.x), static_cast<i32>(gridDim.x),
        [&](const Place& first) { entries_.prefetch(p_, table, first, lane_); },
        [&](const Piece& piece, bool has_next, const Place& next) {
          emit(table, piece, has_next, next);
        });
    // The end needs a record that nobody reads any more, as any other piece does.
    ring_.wait_empty(at_);
    if (lane_ == 0) ring_.record(record_)->stages = 0;
    ptx::mbarrier_arrive(ring_.recorded(record_));
    step_record();
  }

 private:
  void emit(const SegmentTable& table, const Piece& piece, bool has_next, const Place& next) {
    const TileRows tile = rows_of_tile(table, piece.at);
    const i32 expert = table.expert[piece.at.segment];
    TileRecord* record = ring_.record(record_);
    ring_.wait_empty(at_);
    entries_.for_each_row(p_, tile, expert, lane_, [&](i32 row, const RowPair& pair) {
      if constexpr (kGathers<P>) Ring<S>::source_rows(record)[row] = pair.source;
      Ring<S>::output_rows(record)[row] = pair.output;
    });
    if (lane_ == 0) *record = record_of(piece, tile, S.tile_n);
    ptx::mbarrier_arrive(ring_.recorded(record_));  // every lane releases what it wrote
    step_record();
    if (has_next) entries_.prefetch(p_, table, next, lane_);
    const i32 atom_row =
        expert * (P.n / abi::kAtomRows) + tile.column_tile * (S.tile_n / abi::kAtomRows);
    const bool is_read_once = table.tiles[piece.at.segment] == 1;
    for (i32 stage = piece.k_begin; stage < piece.k_end; ++stage) {
      ring_.wait_empty(at_);
      if (lane_ == 0) copy_stage(stage, atom_row, is_read_once, tile);
      at_.advance();
    }
  }

  void copy_stage(i32 stage, i32 atom_row, bool is_read_once, const TileRows& tile) {
    const u32 base = ring_.stage(at_.slot);
    const u32 full = ring_.full(at_.slot);
    const i32 slice = stage * S.slices_per_stage;
    const i32 width = abi::width_of(S, tile.rows);
    const u32 row_bytes = kGathers<P> ? 0 : width * (S.slices_per_stage * kActivationRowBytes);
    ptx::mbarrier_arrive_expect_tx(full, kStageBytes + row_bytes);
    if (is_read_once) {
      ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kWeights, &p_.weights, 0, slice, atom_row,
                                   full, read_once_);
      ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kScales, &p_.scales, 0, slice, atom_row,
                                   full, read_once_);
    } else {
      ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kWeights, &p_.weights, 0, slice, atom_row,
                                   full);
      ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kScales, &p_.scales, 0, slice, atom_row,
                                   full);
    }
    if constexpr (!kGathers<P>) {
      const abi::TensorMap* map = &p_.rows_of_width[(S.tile_m - width) / S.width_step];
      ptx::cp_async_bulk_tensor_3d(base, map, 0, static_cast<i32>(tile.first), slice, full);
    }
  }

  void step_record() { record_ = record_ == S.stages ? 0 : record_ + 1; }

  const GemmParams& p_;
  const Ring<S>& ring_;
  i32 lane_;
  abi::u64 read_once_;
  RingPosition<S> at_;
  u32 record_ = 0;
  TileEntries<S, P> entries_;
};

// The threads that gather: eight rows at a time, eight lanes to the 128 bytes of a row and slice.
template <Schedule S, Problem P>
class WgmmaGatherer {
  static constexpr i32 kSlices = P.k / abi::kAtomDepth;
  static constexpr i32 kRowsPerPass = kGatherThreads / 8;
  static constexpr i32 kPasses = (S.tile_m + kRowsPerPass - 1) / kRowsPerPass;
  static_assert(kRowsPerPass % 8 == 0, "a pass keeps the place of a row among eight");

 public:
  WgmmaGatherer(const GemmParams& p, const Ring<S>& ring, i32 thread)
      : p_(p), ring_(ring), records_(ring), row_(thread >> 3), chunk_(thread & 7) {}

  void run() {
    records_.for_each_record([&](u32 record, i32 stages) {
      const i32 rows = read_field(record, RecordField::steps) * 8;
      const u32 slice_bytes = abi::width_of(S, rows) * kActivationRowBytes;
      const i32 first = read_field(record, RecordField::first_stage) * S.slices_per_stage;
      const char* from =
          static_cast<const char*>(p_.activations) + first * kActivationRowBytes + chunk_ * 16;
      // Rows that nobody owns take the first row's bytes along: they are never stored.
      const char* at[kPasses];
#pragma unroll
      for (i32 i = 0; i < kPasses; ++i) {
        const i32 row = row_ + kRowsPerPass * i;
        const i32 source =
            row < rows ? ptx::ld_shared_i32(record + Ring<S>::kSourceRows + row * 4) : 0;
        at[i] =
            from + static_cast<abi::u64>(static_cast<u32>(source < 0 ? 0 : source)) * (P.k * 2ull);
      }
      i32 slice = first;
#pragma unroll 1
      for (; stages > 0; --stages, slice += S.slices_per_stage) {
        ring_.wait_empty(at_);
        gather(at, rows, slice_bytes, slice);
        ptx::cp_async_mbarrier_arrive_noinc(ring_.landed(at_.slot));
        at_.advance();
      }
    });
  }

 private:
  // Instructions are dear beside wgmma, which keeps the ports of the registers busy, and a copy
  // holds on to its address for a while: every row has a pointer of its own, which moves on.
  void gather(const char* (&at)[kPasses], i32 rows, u32 slice_bytes, i32 slice) {
    const u32 to = ring_.stage(at_.slot) + swizzled_offset(row_, chunk_);
#pragma unroll
    for (i32 i = 0; i < kPasses; ++i) {
#pragma unroll
      for (i32 q = 0; q < S.slices_per_stage; ++q) {
        const u32 into = to + i * (kRowsPerPass * kActivationRowBytes) + q * slice_bytes;
        const bool wanted = i * kRowsPerPass < rows;
        if (kSlices % S.slices_per_stage == 0 || slice + q < kSlices)
          ptx::cp_async_16_of_128_if(wanted, into, at[i] + q * kActivationRowBytes);
        else if (wanted)
          ptx::cp_async_16_zero(into, at[i]);
      }
    }
#pragma unroll
    for (i32 i = 0; i < kPasses; ++i) at[i] += S.slices_per_stage * kActivationRowBytes;
  }

  const GemmParams& p_;
  const Ring<S>& ring_;
  RecordReader<S> records_;
  i32 row_, chunk_;
  RingPosition<S> at_;
};

// The lane that publishes gathered stages.
template <Schedule S>
class WgmmaPublisher {
 public:
  explicit WgmmaPublisher(const Ring<S>& ring) : ring_(ring), records_(ring) {}

  void run() {
    records_.for_each_record([&](u32, i32 stages) {
      for (; stages > 0; --stages) {
        ring_.wait_landed(at_);
        ptx::fence_proxy_async_shared();
        ptx::mbarrier_arrive(ring_.full(at_.slot));
        at_.advance();
      }
    });
  }

 private:
  const Ring<S>& ring_;
  RecordReader<S> records_;
  RingPosition<S> at_;
};

}  // namespace chord::device
