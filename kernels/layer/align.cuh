// Alignment of a routing to block_m (moe_align_block_size), stable: ids of one expert ascend.
//
// A counting sort. A CTA has a chunk of the ids and each of its warps a part of that, in order. A
// warp counts its ids of every expert 32 at a time; sums over warps, chunks and experts say where
// each warp's ids of each expert begin, and a second walk in the same order puts them there. No
// atomics, so the same input gives the same bits. One chunk: one launch. Several: a launch that
// counts, then one that places; both have the same text.
#pragma once

#include "chord/abi/layer.h"
#include "kernels/ptx/control.cuh"

namespace chord::device {

using abi::AlignParams;
using abi::i32;
using abi::i64;
using abi::u16;
using abi::u32;

class Align {
  static constexpr i32 kWarps = abi::kAlignWarps;
  static constexpr i32 kOfWarp = abi::kAlignChunk / kWarps;  // ids
  static constexpr u32 kWholeWarp = 0xffffffffu;

 public:
  Align(const AlignParams& p, char* shared)
      : p_(p),
        before_(reinterpret_cast<u16*>(shared)),
        starts_(reinterpret_cast<i32*>(shared + abi::kMaxAlignedExperts * 2 * kWarps)),
        thread_(static_cast<i32>(threadIdx.x)),
        warp_(thread_ / 32),
        lane_(thread_ % 32) {
    const i64 left = p.num_ids - static_cast<i64>(blockIdx.x) * abi::kAlignChunk;
    warps_ = static_cast<i32>(abi::min_of(kWarps, abi::ceil_div(abi::max_of(left, 0), kOfWarp)));
  }

  void count_only() {
    count();
    for (i32 e = thread_; e < p_.experts; e += abi::kAlignThreads)
      p_.counts[static_cast<i64>(blockIdx.x) * p_.experts + e] = starts_[e];
  }

  void place() {
    count();
    const i32 padded = lay_out();
    if (blockIdx.x == 0 && thread_ == 0) *p_.num_tokens_padded = padded;
    __syncthreads();
    scatter();
  }

 private:
  // Every lane calls visit(expert or -1, rank among the lanes that have the same, how many those
  // are, index of the id), the ids of the warp in order.
  template <class Visit>
  void for_each_id(const Visit& visit) const {
    const i64 first = static_cast<i64>(blockIdx.x) * abi::kAlignChunk + warp_ * kOfWarp;
#pragma unroll
    for (i32 i = 0; i < kOfWarp; i += 32) {
      const i64 index = first + i + lane_;
      const i32 id = index < p_.num_ids ? p_.ids[index] : -1;
      const i32 expert = id >= 0 && id < p_.experts && is_kept(id) ? id : -1;
      const u32 same = __match_any_sync(kWholeWarp, expert);
      visit(expert, __popc(same & ((1u << lane_) - 1)), __popc(same), static_cast<i32>(index));
      __syncwarp();
    }
  }

  bool is_kept(i32 id) const {
    return p_.expert_map == nullptr || p_.foreign == abi::ForeignExperts::mark ||
           p_.expert_map[id] >= 0;
  }

  u16& before(i32 warp, i32 expert) const { return before_[warp * p_.experts + expert]; }

  // Of every expert: what the warps ahead of each have, and in starts_ what the chunk has.
  void count() {
    for (i32 i = thread_; i < warps_ * p_.experts; i += abi::kAlignThreads) before_[i] = 0;
    __syncthreads();
    for_each_id([&](i32 expert, i32 rank, i32 same, i32) {
      if (expert >= 0 && rank == 0)
        before(warp_, expert) = static_cast<u16>(before(warp_, expert) + same);
    });
    __syncthreads();
    for (i32 e = thread_; e < p_.experts; e += abi::kAlignThreads) {
      i32 sum = 0;
      for (i32 w = 0; w < warps_; ++w) {
        const i32 of_warp = before(w, e);
        before(w, e) = static_cast<u16>(sum);
        sum += of_warp;
      }
      starts_[e] = sum;
    }
  }

  // Of all chunks, and of those ahead of this one.
  struct Counts {
    i32 all = 0, ahead = 0;
  };
  Counts counts_of(i32 expert) const {
    if (p_.chunks == 1) return {starts_[expert], 0};
    Counts sum;
    const i32 chunk = static_cast<i32>(blockIdx.x);
    for (i32 c = 0; c < p_.chunks; ++c) {
      const i32 count = p_.counts[static_cast<i64>(c) * p_.experts + expert];
      sum.all += count;
      if (c < chunk) sum.ahead += count;
    }
    return sum;
  }

  // Where each expert's rows of this chunk begin; writes expert_ids and the padding of this CTA's
  // share of the experts. One thread per expert: there are never more experts than threads.
  i32 lay_out() {
    __shared__ i32 of_warp[kWarps];
    const Counts counts = thread_ < p_.experts ? counts_of(thread_) : Counts{};
    const i32 padded = (counts.all + p_.block_m - 1) / p_.block_m * p_.block_m;
    i32 end = padded;
    for (i32 step = 1; step < 32; step *= 2) {
      const i32 ahead = __shfl_up_sync(kWholeWarp, end, step);
      if (lane_ >= step) end += ahead;
    }
    if (lane_ == 31) of_warp[warp_] = end;
    __syncthreads();
    i32 total = 0;
    for (i32 w = 0; w < kWarps; ++w) {
      if (w == warp_) end += total;
      total += of_warp[w];
    }
    const i32 begin = end - padded;
    if (thread_ < p_.experts) {
      starts_[thread_] = begin + counts.ahead;
      if (thread_ % gridDim.x == blockIdx.x) fill(begin, counts.all, padded);
    }
    return total;
  }

  void fill(i32 begin, i32 rows, i32 padded) const {
    const i32 expert = p_.expert_map == nullptr ? thread_ : p_.expert_map[thread_];
    for (i32 block = begin / p_.block_m; block < (begin + padded) / p_.block_m; ++block)
      p_.expert_ids[block] = expert < 0 ? -1 : expert;
    for (i32 row = rows; row < padded; ++row)
      p_.sorted_ids[begin + row] = static_cast<i32>(p_.num_ids);
  }

  void scatter() {
    for_each_id([&](i32 expert, i32 rank, i32 same, i32 index) {
      const i32 first = expert >= 0 ? before(warp_, expert) : 0;
      __syncwarp();
      if (expert < 0) return;
      p_.sorted_ids[starts_[expert] + first + rank] = index;
      if (rank == 0) before(warp_, expert) = static_cast<u16>(first + same);
    });
  }

  const AlignParams& p_;
  u16* before_;  // [warps][experts]
  i32* starts_;  // [experts]
  i32 thread_, warp_, lane_;
  i32 warps_;  // that have ids
};

inline void align(const AlignParams& p) {
  extern __shared__ __align__(16) char shared[];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  Align align(p, shared);
  if (p.pass == abi::AlignPass::count)
    align.count_only();
  else
    align.place();
}

}  // namespace chord::device
