// Counts what was written where nobody may write. One block per output row.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

extern "C" __global__ void chord_kernel(const __grid_constant__ ChangedParams p) {
  if (p.is_owned[blockIdx.x]) return;
  const u16* output = p.output + static_cast<i64>(blockIdx.x) * p.n;
  u64 changed = 0;
  for (i32 n = threadIdx.x; n < p.n; n += blockDim.x) changed += output[n] != kPoison;
  if (changed != 0) atomicAdd(p.changed, changed);
}
