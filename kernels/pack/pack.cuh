// The GPU packer: one thread per chunk and scale, straight from the checkpoint's tensors, no
// scratch. The caller sets *status to kPackStatusClean before the launch.
#pragma once

#include "kernels/pack/chunk.cuh"

namespace chord::device {

template <CodeSource Codes, ScaleSource Scales>
inline void pack(const PackParams& p) {
  const i64 chunk = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= chunk_count(p.experts, p.n, p.k)) return;
  const ChunkPlace at = chunk_place(chunk, p.n, p.k);
  u64 status = abi::kPackStatusClean;
  reinterpret_cast<Chunk*>(p.packed_weights)[chunk] = pack_codes<Codes>(p, at, status);
  p.packed_scales[chunk] = pack_scale<Scales>(p, at, status);
  // Rare, and the smallest wins: every run names the same offender, the one the CPU names.
  if (status != abi::kPackStatusClean) atomicMin(p.status, status);
}

}  // namespace chord::device
