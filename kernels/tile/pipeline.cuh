// The ring between the producer and the consumers, and the records that travel with it. Told of
// mma; wgmma and resident fill stages otherwise, and each has barriers of its own beside these.
//
// One ring of stages runs through all tiles without draining. A stage is full when the tensor
// copies of its weights and scales have landed (transaction bytes) and every producer lane's
// cp.async of activations has (32 noinc arrivals); it is empty when all consumer warps have
// arrived. The producer alone walks the work list: for every piece it writes a TileRecord, and
// consumers learn everything they need from there, so no routing is read while they multiply.
//
// Records live in a ring of stages + 1. Record i is written after the producer has seen the first
// stage of piece i empty. That stage's slot was last used by a stage of piece i - stages or later
// (every piece has at least one stage), and consumers released it only after they had left the
// epilogue of the piece before. So the record overwritten, i - (stages + 1), has no reader left. It
// is visible because the writing lanes meet in __syncwarp before lane 0's arrive (release), which
// consumers acquire.
#pragma once

#include "chord/abi/schedule.h"
#include "kernels/ptx/control.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/memory.cuh"

namespace chord::device {

using abi::i32;
using abi::i64;
using abi::Schedule;
using abi::u32;

inline constexpr u32 kRecordHeaderBytes = 64;

// Header of a record; tile_m source rows and tile_m output rows follow it in shared memory.
struct TileRecord {
  i32 stages;        // of this piece, or panels; 0 ends the work
  i32 steps;         // n8 steps that hold rows
  i32 first_column;  // n of the tile
  i32 is_head;       // begins inside the tile: store a partial
  i32 contributors;  // ranges whose partials complete this piece
  i32 range;         // of this CTA
  i32 first_stage;   // of K
};
static_assert(sizeof(TileRecord) <= kRecordHeaderBytes);

// Where a field lies, for readers that have the record's address in shared memory.
enum class RecordField : u32 {
  stages = 0,
  steps = 4,
  first_column = 8,
  is_head = 12,
  contributors = 16,
  range = 20,
  first_stage = 24,
};

inline i32 read_field(u32 record, RecordField field) {
  return ptx::ld_shared_i32(record + static_cast<u32>(field));
}

// Offsets into dynamic shared memory; the sum is abi::shared_bytes.
template <Schedule S>
struct SharedMap {
  static constexpr i64 kStage = abi::stage_bytes(S);
  static constexpr i64 kWeights = abi::activation_stage_bytes(S);  // inside a stage
  static constexpr i64 kScales = kWeights + abi::weight_stage_bytes(S);
  static constexpr i64 kFetchedPartial = S.stages * kStage;
  static constexpr i64 kRows = kFetchedPartial + abi::fetched_partial_bytes(S);  // resident
  static constexpr i64 kBarriers = kRows + abi::row_buffers(S) * abi::row_buffer_bytes(S);
  static constexpr i64 kRecords = kBarriers + abi::barrier_bytes(S);
  static constexpr i64 kSegments = kRecords + abi::max_records(S) * abi::tile_record_bytes(S);
  static constexpr i64 kWaves = kSegments + abi::segment_table_bytes();
  static constexpr i64 kStaging = abi::round_up(kWaves + abi::wave_table_bytes(S), 16);
  static constexpr i64 kEnd = kStaging + abi::staging_bytes(S);
  static_assert(kEnd <= abi::shared_bytes(S) && kSegments % 8 == 0 && kWeights % 128 == 0 &&
                kScales % 128 == 0 && kFetchedPartial % 128 == 0);
};

// A position in the ring: slot and phase. `index` of the record ring runs apart.
template <Schedule S>
struct RingPosition {
  u32 slot = 0;
  u32 phase = 0;

  void advance() {
    if (++slot == S.stages) {
      slot = 0;
      phase ^= 1;
    }
  }
  // The next stage of a warpgroup that has every `Stages`th.
  template <u32 Stages>
  void advance() {
    slot += Stages;
    if (slot >= S.stages) {
      slot -= S.stages;
      phase ^= 1;
    }
  }
};

template <Schedule S>
class Ring {
  static constexpr u32 kReleases = S.release == abi::Release::every_lane ? 32 : 1;  // of a warp

 public:
  explicit Ring(char* shared)
      : shared_(shared),
        base_(ptx::shared_address(shared)),
        barriers_(base_ + SharedMap<S>::kBarriers) {}

  // The same ring, of whose addresses ptxas knows nothing (ptx::opaque).
  Ring opaque() const {
    Ring same = *this;
    same.base_ = static_cast<u32>(ptx::opaque(static_cast<i32>(base_)));
    same.barriers_ = same.base_ + static_cast<u32>(SharedMap<S>::kBarriers);
    return same;
  }

  u32 stage(u32 slot) const { return base_ + slot * static_cast<u32>(SharedMap<S>::kStage); }
  u32 full(u32 slot) const { return barriers_ + 8 * slot; }
  u32 empty(u32 slot) const { return barriers_ + 8 * (S.stages + slot); }
  u32 fetched() const { return barriers_ + 8 * (2 * S.stages); }
  // resident only: of a buffer of rows.
  u32 rows_full(u32 buffer) const { return barriers_ + 8 * (2 * S.stages + 1 + buffer); }
  u32 rows_empty(u32 buffer) const { return rows_full(buffer + abi::kMaxRowBuffers); }
  u32 run_written(u32 index) const { return rows_full(index + 2 * abi::kMaxRowBuffers); }
  u32 rows(u32 buffer) const {
    return base_ + static_cast<u32>(SharedMap<S>::kRows + buffer * abi::row_buffer_bytes(S));
  }
  // wgmma only.
  u32 landed(u32 slot) const { return barriers_ + 8 * (2 * S.stages + 1 + slot); }
  u32 recorded(u32 index) const { return barriers_ + 8 * (3 * S.stages + 1 + index); }
  // Of those who store together: a warp, or a warpgroup.
  u32 staging(u32 team) const {
    return base_ + static_cast<u32>(SharedMap<S>::kStaging +
                                    team * abi::staging_rows(S) * abi::staging_row_bytes(S));
  }
  u32 fetched_partial() const { return base_ + static_cast<u32>(SharedMap<S>::kFetchedPartial); }

  TileRecord* record(u32 index) const {
    return reinterpret_cast<TileRecord*>(shared_ + SharedMap<S>::kRecords +
                                         index * abi::tile_record_bytes(S));
  }
  // The same in shared address space: of a record, its fields and rows.
  u32 record_address(u32 index) const {
    return base_ + static_cast<u32>(SharedMap<S>::kRecords + index * abi::tile_record_bytes(S));
  }
  static constexpr u32 kSourceRows = kRecordHeaderBytes;
  static constexpr u32 kOutputRows = kSourceRows + (abi::is_resident(S) ? 0 : 4 * S.tile_m);

  static i32* source_rows(TileRecord* record) {
    return reinterpret_cast<i32*>(reinterpret_cast<char*>(record) + kSourceRows);
  }
  static i32* output_rows(TileRecord* record) {
    return reinterpret_cast<i32*>(reinterpret_cast<char*>(record) + kOutputRows);
  }

  // How many arrivals fill a stage, and how many threads gather rows: their arrivals say that the
  // rows of a stage have landed, or fill a buffer of them.
  void initialise(u32 fillers, u32 gatherers = 0) const {
    for (u32 slot = 0; slot < S.stages; ++slot) {
      ptx::mbarrier_init(full(slot), fillers);
      ptx::mbarrier_init(empty(slot), kReleases * abi::warps_of_stage(S));
      if (S.mainloop == abi::Mainloop::wgmma) ptx::mbarrier_init(landed(slot), gatherers);
    }
    ptx::mbarrier_init(fetched(), 1);
    for (i32 buffer = 0; buffer < abi::row_buffers(S); ++buffer) {
      ptx::mbarrier_init(rows_full(buffer), gatherers);
      ptx::mbarrier_init(rows_empty(buffer), kReleases * abi::kConsumerWarps);
    }
    if constexpr (abi::is_resident(S))
      for (u32 index = 0; index <= abi::row_buffers(S); ++index)
        ptx::mbarrier_init(run_written(index), 1);
    if constexpr (S.mainloop == abi::Mainloop::wgmma)
      for (u32 index = 0; index <= S.stages; ++index) ptx::mbarrier_init(recorded(index), 32);
    ptx::fence_mbarrier_init();
  }

  void wait_full(const RingPosition<S>& at) const {
    while (!ptx::mbarrier_try_wait_parity(full(at.slot), at.phase)) {
    }
  }
  // The first pass over the ring finds every slot empty: parity 1 of a fresh barrier is complete.
  void wait_empty(const RingPosition<S>& at) const {
    while (!ptx::mbarrier_try_wait_parity(empty(at.slot), at.phase ^ 1)) {
    }
  }
  void wait_landed(const RingPosition<S>& at) const {
    while (!ptx::mbarrier_try_wait_parity(landed(at.slot), at.phase)) {
    }
  }
  void wait_recorded(u32 index, u32 phase) const {
    while (!ptx::mbarrier_try_wait_parity(recorded(index), phase)) {
    }
  }
  void wait_rows_full(u32 buffer, u32 phase) const {
    while (!ptx::mbarrier_try_wait_parity(rows_full(buffer), phase)) {
    }
  }
  void wait_rows_empty(u32 buffer, u32 phase) const {
    while (!ptx::mbarrier_try_wait_parity(rows_empty(buffer), phase ^ 1)) {
    }
  }
  void wait_run_written(u32 index, u32 phase) const {
    while (!ptx::mbarrier_try_wait_parity(run_written(index), phase)) {
    }
  }
  // Filled once in a launch at most.
  void wait_fetched() const {
    while (!ptx::mbarrier_try_wait_parity(fetched(), 0)) {
    }
  }
  // __syncwarp orders the reads of all lanes before lane 0's arrive, which releases them.
  void release(const RingPosition<S>& at, u32 lane) const { release(empty(at.slot), lane); }
  void release_rows(u32 buffer, u32 lane) const { release(rows_empty(buffer), lane); }
  // The same without a branch, which would keep instructions apart that may overlap.
  void release_if(bool condition, const RingPosition<S>& at, u32 lane) const {
    const bool arrives = S.release == abi::Release::every_lane || lane == 0;
    if constexpr (S.release == abi::Release::elected_lane) __syncwarp();
    ptx::mbarrier_arrive_if(condition && arrives, empty(at.slot));
  }

 private:
  static void release(u32 barrier, u32 lane) {
    if constexpr (S.release == abi::Release::every_lane) {
      ptx::mbarrier_arrive(barrier);
    } else {
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(barrier);
    }
  }

  char* shared_;
  u32 base_;
  u32 barriers_;
};

}  // namespace chord::device
