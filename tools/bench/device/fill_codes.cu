// Random codes, eight to a word. One thread per word.
#include "tools/bench/device/numbers.cuh"

using namespace chord::bench;

extern "C" __global__ void chord_kernel(const __grid_constant__ FillCodesParams p) {
  const i64 at = global_thread();
  if (at >= p.count) return;
  const u64 bits = random_bits(p.seed, at);
  u32 word = 0;
  for (i32 i = 0; i < 8; ++i) {
    const u32 byte = static_cast<u32>(bits >> (8 * i)) & 255;
    const u32 code = p.fifteen_codes ? 1 + (byte * 15 >> 8) : byte >> 4;
    word |= code << (4 * i);
  }
  p.words[at] = word;
}
