// A plan's fields as lists, from both faces.
#pragma once

#include <cstdint>
#include <vector>

#include "chord/fields.h"
#include "tests/c_api/fixture.h"

namespace chord::c_api_test {

// What decode() of the fixture asks for.
inline GemmDescriptor cpp_decode() {
  GemmDescriptor descriptor;
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = 48;
  descriptor.rows = 160;
  descriptor.profile = "h200_decode_ep8";
  return descriptor;
}

inline std::vector<int> fields_of(const KernelSchedule& s) {
  std::vector<int> values;
  for_each_field(s, [&](const char*, auto value) { values.push_back(static_cast<int>(value)); });
  return values;
}

inline std::vector<int> fields_of(const chord_kernel_schedule_t& s) {
  return {s.mainloop,         s.block_m, s.tile_m,         s.tile_n, s.widths,  s.width_step,
          s.slices_per_stage, s.stages,  s.dequantisation, s.split,  s.release, s.epilogue};
}

// What a family does not have is 0 in the C face.
inline std::vector<std::int64_t> fields_of(const PublishedSchedule& s) {
  return {s.block_m,
          s.block_n,
          s.block_k,
          s.num_stages,
          s.ctas_per_sm.value_or(0),
          s.swap_ab.value_or(false),
          s.stream_k.value_or(false),
          s.cluster_m.value_or(0),
          s.cluster_n.value_or(0),
          s.smem_bytes.value_or(0)};
}

inline std::vector<std::int64_t> fields_of(const chord_published_schedule_t& s) {
  return {s.block_m, s.block_n,  s.block_k,   s.num_stages, s.ctas_per_sm,
          s.swap_ab, s.stream_k, s.cluster_m, s.cluster_n,  s.smem_bytes};
}

}  // namespace chord::c_api_test
