// What is brought into the L2 while the routing is planned, when the memory has nothing else to do.
// One thread of a CTA issues it, behind the loads of the routing; nobody waits for it and nothing
// depends on it.
#pragma once

#include "kernels/ptx/copy.cuh"
#include "kernels/routing/work_list.cuh"

namespace chord::device {

inline constexpr i32 kWarmActivationBytes = 4 << 20;

// This CTA's share of the tokens of an indexed launch. Everybody needs them first of all, and they
// would come behind the weights.
template <Schedule S, Problem P>
inline void warm_activations(const abi::GemmParams& p) {
  if (P.routing != abi::RoutingKind::indexed) return;
  const i64 bytes = quotient(p.num_ids, p.top_k) * (P.k * 2);
  if (bytes > kWarmActivationBytes) return;
  const u32 ctas = gridDim.x;
  const u32 share = (static_cast<u32>(bytes) / ctas + 128) / 128 * 128;
  const u32 first = share * blockIdx.x;
  if (first >= bytes) return;
  const u32 left = static_cast<u32>(bytes) - first;
  ptx::cp_async_bulk_prefetch(static_cast<const char*>(p.activations) + first,
                              share < left ? share : left);
}

// Where waves are dealt out, CTA i begins with tile i.
template <Schedule S>
inline constexpr bool deals_waves =
    S.mainloop == abi::Mainloop::wgmma&& S.split == abi::Split::automatic;

// The weights where this CTA's range would begin if every expert had as many rows. Somebody reads
// them soon if that expert has any. Worth 2 to 5 us of EP8 gate/up (stages and thresholds are
// measured: counts are planned sooner than blocks, and in short work a wrong guess costs more than
// it brings).
template <Schedule S, Problem P>
inline void warm_weights(const abi::GemmParams& p) {
  constexpr WorkShape kShape = WorkShape::of(S, P);
  if (P.routing == abi::RoutingKind::indexed && p.num_ids < p.experts) return;  // few have rows
  const i64 units = static_cast<i64>(p.experts) * (kShape.column_tiles * kShape.k_stages);
  const i32 ctas = static_cast<i32>(gridDim.x);
  if (units < 15 * ctas) return;
  const i32 stages = P.routing == abi::RoutingKind::indexed && units >= 120 * ctas ? 4 : 2;
  const i32 cta = static_cast<i32>(blockIdx.x);
  const i64 first = deals_waves<S> ? static_cast<i64>(cta) * kShape.k_stages
                                   : quotient(units * (ctas - 1 - cta), ctas);
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
