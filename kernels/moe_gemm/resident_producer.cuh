// Who loads where rows stay. Three warps bring the rows of a tile, by a tensor copy where they lie
// together and by cp.async where they do not, and write its record; one lane streams the weights of
// panel after panel. The first of the three warps walks the work list and tells the others of every
// run of panels, as soon as it is known, so that entries and weights are on their way before there
// is a buffer for the rows.
//
// Runs and records live in rings of one more than there are buffers of rows. The walker writes run
// i when it has seen the buffer of run i - 1 empty, so both warpgroups have released the rows of
// run i - 1 - buffers, the one overwritten: all its rows and panels were loaded. A record is
// written when the buffer of its run is empty; a warpgroup releases the rows of run i - buffers
// only after it has stored the panels of the one before, whose record is overwritten. (The run
// that ends a window has no panels: all have read it when they meet before the next.)
//
// Gathered rows: as in wgmma_producer.cuh, but each gathering lane waits for its own copies, makes
// the proxy fence and arrives; here it is once a run.
#pragma once

#include "kernels/ptx/copy.cuh"
#include "kernels/routing/pieces.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/swizzle.cuh"

namespace chord::device {

inline constexpr i32 kRowWarps = 3;

// Panels of a tile, one after the other.
struct PanelRun {
  i64 first_row;  // position of the tile's first row
  i32 rows;
  i32 expert;
  i32 first_panel;
  i32 panels;        // 0 ends the window
  i32 is_read_once;  // its segment has no other tile
};

// Reads runs one after the other.
template <Schedule S>
class RunReader {
 public:
  RunReader(const Ring<S>& ring, const PanelRun* runs) : ring_(ring), runs_(runs) {}

  PanelRun next() {
    ring_.wait_run_written(index_, phase_);
    const PanelRun run = runs_[index_];
    if (++index_ > abi::row_buffers(S)) {
      index_ = 0;
      phase_ ^= 1;
    }
    return run;
  }

 private:
  const Ring<S>& ring_;
  const PanelRun* runs_;
  u32 index_ = 0, phase_ = 0;
};

// The lane that loads weights.
template <Schedule S, Problem P>
class PanelLoader {
  static constexpr i32 kPanelAtoms = S.tile_n / abi::kAtomRows;
  static constexpr u32 kStageBytes =
      static_cast<u32>(abi::weight_stage_bytes(S) + abi::scale_stage_bytes(S));

 public:
  PanelLoader(const GemmParams& p, const Ring<S>& ring, const PanelRun* runs)
      : p_(p), ring_(ring), runs_(ring, runs), read_once_(ptx::createpolicy_evict_first()) {}

  // Up to the run that ends the window.
  void run() {
    for (;;) {
      const PanelRun run = runs_.next();
      if (run.panels == 0) return;
      i32 atom_row = run.expert * (P.n / abi::kAtomRows) + run.first_panel * kPanelAtoms;
      for (i32 i = 0; i < run.panels; ++i, atom_row += kPanelAtoms)
        load(atom_row, run.is_read_once != 0);
    }
  }

 private:
  void load(i32 atom_row, bool is_read_once) {
    ring_.wait_empty(at_);
    const u32 full = ring_.full(at_.slot);
    const u32 weights = ring_.stage(at_.slot) + SharedMap<S>::kWeights;
    const u32 scales = ring_.stage(at_.slot) + SharedMap<S>::kScales;
    ptx::mbarrier_arrive_expect_tx(full, kStageBytes);
    if (is_read_once) {
      ptx::cp_async_bulk_tensor_3d(weights, &p_.weights, 0, 0, atom_row, full, read_once_);
      ptx::cp_async_bulk_tensor_3d(scales, &p_.scales, 0, 0, atom_row, full, read_once_);
    } else {
      ptx::cp_async_bulk_tensor_3d(weights, &p_.weights, 0, 0, atom_row, full);
      ptx::cp_async_bulk_tensor_3d(scales, &p_.scales, 0, 0, atom_row, full);
    }
    at_.advance();
  }

  const GemmParams& p_;
  const Ring<S>& ring_;
  RunReader<S> runs_;
  abi::u64 read_once_;
  RingPosition<S> at_;
};

// A warp of those that bring rows: every third row is its own. Warp 0 walks.
template <Schedule S, Problem P>
class RowLoader {
  static constexpr WorkShape kShape = WorkShape::of(S, P);
  static constexpr bool kGathersRows = P.routing == RoutingKind::indexed;
  static constexpr i32 kBuffers = abi::row_buffers(S);
  static constexpr i32 kPerLane = (S.tile_m + 32 * kRowWarps - 1) / (32 * kRowWarps);

 public:
  RowLoader(const GemmParams& p, const Ring<S>& ring, PanelRun* runs, i32 warp, i32 lane)
      : p_(p), ring_(ring), runs_(runs), told_(ring, runs), warp_(warp), lane_(lane) {}

  // Every run of this CTA, then the one that ends the window.
  void run(const SegmentTable& table, bool is_first_window) {
    if (warp_ == 0) walk(table, is_first_window);
    for (;;) {
      const PanelRun run = told_.next();
      load(run);
      if (run.panels == 0) return;
    }
  }

 private:
  // All but the first run of a walk are told when the one before has been loaded.
  void walk(const SegmentTable& table, bool is_first_window) {
    const i32 ctas = static_cast<i32>(gridDim.x);
    Cut cut;
    if (table.total_cost > 0)
      cut = cut_of(table, kShape, ctas, is_first_window && table.has_more == 0);
    const WorkList list(table, kShape, cut);
    i32 range = static_cast<i32>(blockIdx.x);
    while (range < cut.ranges) {
      const Place end = list.start_of(range + (lane_ & 1));  // even lanes: its start
      const auto of_lane = [&](i32 lane) {
        return Place{__shfl_sync(0xffffffffu, end.segment, lane),
                     __shfl_sync(0xffffffffu, end.tile, lane),
                     __shfl_sync(0xffffffffu, end.k, lane)};
      };
      const CtaWork work{of_lane(0), of_lane(1), range, 0, 0};
      walk_pieces<false>(
          list, work, 0, ctas, [](const Place&) {},
          [&](const Piece& piece, bool, const Place&) {
            const TileRows tile = rows_of_tile(table, piece.at);
            tell({tile.first, tile.rows, table.expert[piece.at.segment], piece.k_begin,
                  piece.k_end - piece.k_begin, table.tiles[piece.at.segment] == 1});
            load(told_.next());
          });
      range = cut.ranges;
      if (cut.taken > 0) range += take() - cut.taken;
    }
    if (cut.taken > 0) leave(ctas);
    tell({});
  }

  // The number of the next of the ranges that are taken.
  i32 take() {
    const i32 number = lane_ == 0 ? atomicAdd(p_.flags, 1) : 0;
    return __shfl_sync(0xffffffffu, number, 0);
  }
  // The last CTA that takes no more leaves the counters at zero.
  void leave(i32 ctas) {
    if (lane_ != 0) return;
    __threadfence();
    if (atomicAdd(p_.flags + 1, 1) != ctas - 1) return;
    __threadfence();
    ptx::st_relaxed_gpu(p_.flags, 0);
    ptx::st_relaxed_gpu(p_.flags + 1, 0);
  }

  void tell(const PanelRun& run) {
    __syncwarp();
    if (lane_ == 0) {
      runs_[next_run_] = run;
      ptx::mbarrier_arrive(ring_.run_written(next_run_));
    }
    if (++next_run_ > kBuffers) next_run_ = 0;
  }

  i32 row_of(i32 i) const { return warp_ + kRowWarps * (32 * i + lane_); }

  const char* row_address(i32 source) const {
    return static_cast<const char*>(p_.activations) + static_cast<i64>(source) * (P.k * 2);
  }

  // The rows of a run and its record.
  void load(const PanelRun& run) {
    const u32 full = ring_.rows_full(buffer_);
    i32 source[kPerLane], output[kPerLane];
#pragma unroll
    for (i32 i = 0; i < kPerLane; ++i) {
      RowPair pair;
      if (row_of(i) < run.rows) {
        const i64 position = run.first_row + row_of(i);
        pair = device::row_of<P.routing>(p_, position, load_entry<P.routing>(p_, position),
                                         run.expert);
      }
      source[i] = pair.source;
      output[i] = pair.output;
      // With one buffer the tensor cores wait for the rows: these then come from the L2.
      if (kGathersRows && kBuffers == 1 && pair.source >= 0)
        ptx::cp_async_bulk_prefetch(row_address(pair.source), P.k * 2);
    }
    ring_.wait_rows_empty(buffer_, phase_);
    TileRecord* record = ring_.record(record_);
    const bool is_leader = warp_ == 0 && lane_ == 0;
    if (is_leader) {
      record->stages = run.panels;
      record->steps = (run.rows + 7) / 8;
      record->first_column = run.first_panel * S.tile_n;
    }
    if (run.panels > 0) {
#pragma unroll
      for (i32 i = 0; i < kPerLane; ++i)
        if (row_of(i) < S.tile_m) Ring<S>::output_rows(record)[row_of(i)] = output[i];
      const i32 width = abi::width_of(S, run.rows);
      if constexpr (kGathersRows) {
        gather(source, run.rows, width);
        ptx::cp_async_wait_all();
        ptx::fence_proxy_async_shared();
      } else if (is_leader) {
        ptx::mbarrier_expect_tx(full, width * S.slices_per_stage * kActivationRowBytes);
        ptx::cp_async_bulk_tensor_3d(ring_.rows(buffer_),
                                     &p_.rows_of_width[(S.tile_m - width) / S.width_step], 0,
                                     static_cast<i32>(run.first_row), 0, full);
      }
    }
    ptx::mbarrier_arrive(full);
    step();
  }

  // As many rows at a time as 32 lanes of 16 bytes hold.
  void gather(const i32 (&source)[kPerLane], i32 rows, i32 width) {
    constexpr i32 kLanes = 8 * S.slices_per_stage;  // of a row
    constexpr i32 kAtOnce = 32 / kLanes;
    const i32 part = lane_ / kLanes, chunk = lane_ % kLanes;
    const u32 to = ring_.rows(buffer_) + (chunk / 8) * (width * kActivationRowBytes);
#pragma unroll
    for (i32 i = 0; i < kPerLane; ++i) {
#pragma unroll(kAtOnce == 1 ? 4 : 1)
      for (i32 j = 0; j < 32; j += kAtOnce) {
        if (warp_ + kRowWarps * (32 * i + j) >= rows) break;
        const i32 row = warp_ + kRowWarps * (32 * i + j + part);
        const i32 origin = __shfl_sync(0xffffffffu, source[i], j + part);
        ptx::cp_async_16_of_128_if(part < kAtOnce && row < rows && origin >= 0,
                                   to + swizzled_offset(row, chunk % 8),
                                   row_address(origin) + chunk * 16);
      }
    }
  }

  void step() {
    if (++record_ > kBuffers) record_ = 0;
    if (++buffer_ == kBuffers) {
      buffer_ = 0;
      phase_ ^= 1;
    }
  }

  const GemmParams& p_;
  const Ring<S>& ring_;
  PanelRun* runs_;
  RunReader<S> told_;
  i32 warp_, lane_;
  i32 next_run_ = 0, record_ = 0, buffer_ = 0;
  u32 phase_ = 0;
};

}  // namespace chord::device
