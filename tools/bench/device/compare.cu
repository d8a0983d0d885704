// Compares one output row with the reference: two sums of squares, then the elements that lie too
// far from where they should. One block per row.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

namespace {

template <class Value>
inline Value block_sum(Value mine, Value* scratch) {
  __syncthreads();
  scratch[threadIdx.x] = mine;
  __syncthreads();
  for (i32 half = kCompareThreads / 2; half > 0; half /= 2) {
    if (static_cast<i32>(threadIdx.x) < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  return scratch[0];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kCompareThreads)
    chord_kernel(const __grid_constant__ CompareParams p) {
  __shared__ double sums[kCompareThreads];
  __shared__ i32 counts[kCompareThreads];
  const float* expected = p.expected + static_cast<i64>(blockIdx.x) * p.expected_pitch;
  const u16* output = p.output + static_cast<i64>(p.out_rows[blockIdx.x]) * p.n;

  double difference = 0, norm = 0;
  i32 unwritten = 0, non_finite = 0;
  for (i32 n = threadIdx.x; n < p.n; n += kCompareThreads) {
    const float found = value_of(output[n]);
    const bool both = is_finite(found) && is_finite(expected[n]);
    unwritten += output[n] == kPoison;
    non_finite += is_finite(found) != is_finite(expected[n]);
    if (!both) continue;
    const double off = static_cast<double>(found) - expected[n];
    difference += off * off;
    norm += static_cast<double>(expected[n]) * expected[n];
  }
  norm = block_sum(norm, sums);
  difference = block_sum(difference, sums);
  unwritten = block_sum(unwritten, counts);
  non_finite = block_sum(non_finite, counts);

  const float rms = static_cast<float>(sqrt(norm / p.n));
  i32 outliers = 0;
  for (i32 n = threadIdx.x; n < p.n; n += kCompareThreads) {
    const float found = value_of(output[n]);
    if (!is_finite(found) || !is_finite(expected[n])) continue;
    outliers += fabsf(found - expected[n]) > 2 * bf16_ulp(expected[n]) + 1e-2f * rms;
  }
  outliers = block_sum(outliers, counts);
  if (threadIdx.x == 0)
    p.errors[blockIdx.x] = {difference, norm, outliers, unwritten, non_finite, 0};
}
