// Random scales. One thread per scale.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

extern "C" __global__ void chord_kernel(const __grid_constant__ FillScalesParams p) {
  const i64 at = global_thread();
  if (at >= p.count) return;
  const u64 bits = random_bits(p.seed, at);
  if (p.is_wide) {
    const u32 exponents = static_cast<u32>(p.max_exponent - p.min_exponent + 1);
    const u32 exponent =
        static_cast<u32>(127 + p.min_exponent) + static_cast<u32>(bits >> 32) % exponents;
    p.scales[at] = static_cast<u16>((bits & 0x8000) | exponent << 7 | (bits & 0x7f));
  } else {
    const float scale = p.low + (p.high - p.low) * unit_of(static_cast<u32>(bits));
    p.scales[at] = static_cast<u16>(bf16_of(scale));
  }
}
