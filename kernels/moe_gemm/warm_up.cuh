// What is brought into the L2 while the routing is planned, when the memory has nothing else to do.
// One thread of a CTA issues it, behind the loads of the routing; nobody waits for it and nothing
// depends on it.
#pragma once

#include "kernels/ptx/copy.cuh"
#include "kernels/routing/work_list.cuh"

namespace chord::device {

// Where a tile's rows stay, weights come in less of a hurry.
template <Schedule S>
inline constexpr i32 kWarmActivationBytes = abi::is_resident(S) ? 16 << 20 : 4 << 20;

// This CTA's share of `bytes`.
inline void warm_share(const void* from, u32 bytes) {
  const u32 share = (bytes / gridDim.x + 128) / 128 * 128;
  const u32 first = share * blockIdx.x;
  if (first >= bytes) return;
  const u32 left = bytes - first;
  ptx::cp_async_bulk_prefetch(static_cast<const char*>(from) + first, share < left ? share : left);
}

// The tokens of an indexed launch. Everybody needs them first of all, and they would come behind
// the weights.
template <Schedule S, Problem P>
inline void warm_activations(const abi::GemmParams& p) {
  if (P.routing != abi::RoutingKind::indexed) return;
  const i64 bytes = quotient(p.num_ids, p.top_k) * (P.k * 2);
  if (bytes <= kWarmActivationBytes<S>) warm_share(p.activations, static_cast<u32>(bytes));
}

// The entries of large blocks, of which the plan reads the last of every run, and loaders all.
template <Schedule S, Problem P>
inline void warm_entries(const abi::GemmParams& p) {
  if (P.routing != abi::RoutingKind::indexed || !abi::uses_wgmma(S)) return;
  const i64 most = p.num_ids + static_cast<i64>(p.experts) * S.block_m;
  const i64 bytes = abi::min_of(p.rows, most) * 4;
  if (bytes <= kWarmActivationBytes<S>) warm_share(p.sorted_ids, static_cast<u32>(bytes) / 16 * 16);
}

// The weights where this CTA's range would begin if every expert had as many rows. Somebody reads
// them soon if that expert has any. Worth 2 to 5 us of EP8 gate/up by mma (stages and thresholds
// are measured: counts are planned sooner than blocks, and in short work a wrong guess costs more
// than it brings). By wgmma it would cost 1 to 5 us, at 1k and 2k rows: the guess is too far off.
template <Schedule S, Problem P>
inline void warm_weights(const abi::GemmParams& p) {
  constexpr WorkShape kShape = WorkShape::of(S, P);
  if (abi::uses_wgmma(S)) return;
  if (P.routing == abi::RoutingKind::indexed && p.num_ids < p.experts) return;  // few have rows
  const i64 units = static_cast<i64>(p.experts) * (kShape.column_tiles * kShape.k_stages);
  const i32 ctas = static_cast<i32>(gridDim.x);
  if (units < 15 * ctas) return;
  const i32 stages = P.routing == abi::RoutingKind::indexed && units >= 120 * ctas ? 4 : 2;
  const i32 cta = static_cast<i32>(blockIdx.x);
  const i64 first = quotient(units * (ctas - 1 - cta), ctas);
  i32 tile = static_cast<i32>(quotient(first, kShape.k_stages));
  i32 k = static_cast<i32>(first - static_cast<i64>(tile) * kShape.k_stages);
  for (i32 stage = 0; stage < stages; ++stage, ++k) {
    if (k == kShape.k_stages) {
      k = 0;
      if (++tile == p.experts * kShape.column_tiles) return;
    }
    const i32 atom_row = tile / kShape.column_tiles * (P.n / abi::kAtomRows) +
                         tile % kShape.column_tiles * (S.tile_n / abi::kAtomRows);
    const i32 slice = k * S.slices_per_stage;
    ptx::cp_async_bulk_prefetch_tensor_3d(&p.weights, 0, slice, atom_row);
    ptx::cp_async_bulk_prefetch_tensor_3d(&p.scales, 0, slice, atom_row);
  }
}

}  // namespace chord::device
