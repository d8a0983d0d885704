// What an epilogue makes of the sums of the reference, in place: one thread per column that is
// left. Gate rows come before up rows, as in the checkpoint; never from the packed order.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

extern "C" __global__ void __launch_bounds__(kFinishThreads)
    chord_kernel(const __grid_constant__ FinishParams p) {
  const i64 entry = blockIdx.x / p.column_blocks;
  const i32 n = static_cast<i32>(blockIdx.x % p.column_blocks * kFinishThreads + threadIdx.x);
  if (n >= p.columns) return;
  float* sums = p.expected + entry * p.n;
  if (p.row_weights != nullptr) {
    sums[n] *= p.row_weights[p.out_rows[entry]];
  } else {
    const double gate = sums[n];
    sums[n] = static_cast<float>(gate / (1.0 + exp(-gate)) * sums[p.columns + n]);
  }
}
