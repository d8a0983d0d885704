// Who loads: one warp walks the work list, writes a record per piece and fills the ring. Lane 0
// issues one tensor copy for the weights and one for the scales of a stage (evict-first: every byte
// is read once); all lanes gather the activation rows by cp.async.
//
// Slices of a stage that lie past K hold zeros in all three operands (tensor copies fill with zero
// what is out of bounds), so consumers multiply every stage alike.
#pragma once

#include "kernels/ptx/control.cuh"
#include "kernels/ptx/copy.cuh"
#include "kernels/routing/pieces.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/reduce.cuh"
#include "kernels/tile/swizzle.cuh"

namespace chord::device {

// Two warps: the one that loads calls, the one that fetches answers.
inline void fetch_call() { ptx::bar_arrive<2, 64>(); }
inline void fetch_answer() { ptx::bar_sync<2, 64>(); }

template <Schedule S, Problem P>
class Producer {
  static constexpr WorkShape kShape = WorkShape::of(S, P);
  static constexpr i32 kSlices = P.k / abi::kAtomDepth;
  static constexpr u32 kStageBytes =
      static_cast<u32>(abi::weight_stage_bytes(S) + abi::scale_stage_bytes(S));

 public:
  // `awaited` is what the fetching warp reads when it is called.
  Producer(const GemmParams& p, const Ring<S>& ring, i32& awaited, i32 lane)
      : p_(p),
        ring_(ring),
        awaited_(awaited),
        lane_(lane),
        policy_(ptx::createpolicy_evict_first()) {}

  // Every piece of this CTA.
  void run(const SegmentTable& table, const Cut& cut) {
    const WorkList list(table, kShape, cut);
    const i32 cta = static_cast<i32>(blockIdx.x);
    walk_pieces<false>(
        list, work_of_cta(list, cut, cta, lane_), cta, static_cast<i32>(gridDim.x),
        [&](const Place& first) { entries_.prefetch(p_, table, first, lane_); },
        [&](const Piece& piece, bool has_next, const Place& next) {
          if (is_fetched(piece.contributors)) call_fetcher(piece.range + 1);
          emit(table, piece, has_next, next);
        });
  }

  void finish() {
    if (!has_called_) call_fetcher(kNoRange);
    ring_.wait_empty(at_);
    if (lane_ == 0) {
      ring_.record(record_)->stages = 0;
      ptx::mbarrier_arrive(ring_.full(at_.slot));
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring_.full(at_.slot));
    ptx::cp_async_wait_all();
  }

 private:
  // Once in a launch: a range has one tile at most that it began and did not finish.
  void call_fetcher(i32 range) {
    has_called_ = true;
    if constexpr (kFetchesPartial<S>) {
      if (lane_ == 0) awaited_ = range;
      __syncwarp();
      fetch_call();
    }
  }

  void emit(const SegmentTable& table, const Piece& piece, bool has_next, const Place& next) {
    const TileRows tile = rows_of_tile(table, piece.at);
    const i32 expert = table.expert[piece.at.segment];
    TileRecord* record = ring_.record(record_);
    record_ = record_ == S.stages ? 0 : record_ + 1;

    const i32 atom_row =
        expert * (P.n / abi::kAtomRows) + tile.column_tile * (S.tile_n / abi::kAtomRows);

    // Weights do not wait for the rows: their copies leave before the entries are looked at.
    ring_.wait_empty(at_);
    copy_weights(piece.k_begin, atom_row);
    write_record(record, tile, expert, piece);
    if (has_next) entries_.prefetch(p_, table, next, lane_);
    gather(record, tile.rows, piece.k_begin);
    at_.advance();
    for (i32 stage = piece.k_begin + 1; stage < piece.k_end; ++stage) {
      ring_.wait_empty(at_);
      copy_weights(stage, atom_row);
      gather(record, tile.rows, stage);
      at_.advance();
    }
  }

  void write_record(TileRecord* record, const TileRows& tile, i32 expert, const Piece& piece) {
    entries_.for_each_row(p_, tile, expert, lane_, [&](i32 row, const RowPair& pair) {
      Ring<S>::source_rows(record)[row] = pair.source;
      Ring<S>::output_rows(record)[row] = pair.output;
    });
    if (lane_ == 0) *record = record_of(piece, tile, S.tile_n);
    __syncwarp();
  }

  void copy_weights(i32 stage, i32 atom_row) {
    if (lane_ != 0) return;
    const u32 base = ring_.stage(at_.slot);
    const u32 full = ring_.full(at_.slot);
    const i32 slice = stage * S.slices_per_stage;
    ptx::mbarrier_expect_tx(full, kStageBytes);
    ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kWeights, &p_.weights, 0, slice, atom_row,
                                 full, policy_);
    ptx::cp_async_bulk_tensor_3d(base + SharedMap<S>::kScales, &p_.scales, 0, slice, atom_row, full,
                                 policy_);
  }

  // The activation rows of one stage, and the arrivals that end its filling: lane 0's releases the
  // record, the lanes' own follow their copies.
  void gather(TileRecord* record, i32 rows, i32 stage) {
    const u32 base = ring_.stage(at_.slot);
    const u32 full = ring_.full(at_.slot);
    const i32 slice = stage * S.slices_per_stage;
    const i32 chunk = lane_ & 7;
    for (i32 row = lane_ >> 3; row < rows; row += 4) {
      const i32 source = Ring<S>::source_rows(record)[row];
      if (source == kNoRow) continue;
      const char* from = static_cast<const char*>(p_.activations) +
                         (static_cast<i64>(source) * P.k + slice * abi::kAtomDepth) * 2 +
                         chunk * 16;
#pragma unroll
      for (i32 q = 0; q < S.slices_per_stage; ++q) {
        const u32 to = base + q * S.tile_m * kActivationRowBytes + swizzled_offset(row, chunk);
        if (kSlices % S.slices_per_stage == 0 || slice + q < kSlices)
          ptx::cp_async_16(to, from + q * kActivationRowBytes);
        else
          ptx::cp_async_16_zero(to, from);
      }
    }
    if (lane_ == 0) ptx::mbarrier_arrive(full);
    ptx::cp_async_mbarrier_arrive_noinc(full);
  }

  const GemmParams& p_;
  const Ring<S>& ring_;
  i32& awaited_;
  i32 lane_;
  abi::u64 policy_;
  bool has_called_ = false;
  RingPosition<S> at_;
  u32 record_ = 0;
  TileEntries<S, P> entries_;
};

}  // namespace chord::device
