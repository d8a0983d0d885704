// Standard normal activations (Box-Muller). One thread per value.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

extern "C" __global__ void chord_kernel(const __grid_constant__ FillActivationsParams p) {
  const i64 at = global_thread();
  if (at >= p.count) return;
  const u64 bits = random_bits(p.seed, at);
  const float radius = sqrtf(-2.0f * __logf(unit_of(static_cast<u32>(bits))));
  const float value = radius * __cosf(6.2831853f * unit_of(static_cast<u32>(bits >> 32)));
  p.values[at] = static_cast<u16>(bf16_of(value));
}
