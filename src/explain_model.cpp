// The arithmetic of explain_model.h.
#include "src/explain_model.h"

#include <algorithm>
#include <cmath>

#include "chord/abi/layout.h"

namespace chord {
namespace {

constexpr std::int64_t kRowTile = 8;    // mma and wgmma widths come in eights
constexpr double kBytesPerElement = 2;  // BF16

std::int64_t routed_rows(const GemmDescriptor& d) {
  if (d.family != Family::grouped_masked) return d.rows;
  return d.experts * std::min(d.expected_m, d.max_m);
}

std::int64_t reached_experts(const GemmDescriptor& d, std::int64_t rows) {
  if (d.experts <= 0 || rows <= 0) return 0;
  if (d.family != Family::indexed) return std::min(d.experts, rows);
  const double experts = static_cast<double>(d.experts);
  const double missed = std::pow(1 - 1 / experts, static_cast<double>(rows));
  return std::clamp<std::int64_t>(std::llround(experts * (1 - missed)), 1, d.experts);
}

// `rows` shared evenly: some experts get the quotient, the rest one row more.
std::int64_t padded_to_tiles(std::int64_t rows, std::int64_t experts) {
  if (experts == 0) return 0;
  const std::int64_t quotient = rows / experts;
  const std::int64_t longer = rows % experts;
  return (experts - longer) * abi::round_up(quotient, kRowTile) +
         longer * abi::round_up(quotient + 1, kRowTile);
}

double launch_bytes(const GemmDescriptor& d, std::int64_t rows, std::int64_t experts) {
  // Of one expert, because all of them may pass 2^63 where a plan is still legal.
  const double weights = static_cast<double>(abi::packed_weight_bytes(1, d.n, d.k)) +
                         static_cast<double>(abi::packed_scale_bytes(1, d.n, d.k));
  return static_cast<double>(experts) * weights +
         kBytesPerElement * static_cast<double>(rows) * static_cast<double>(d.n + d.k);
}

double operations(const GemmDescriptor& d, std::int64_t rows) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(d.n) * static_cast<double>(d.k);
}

}  // namespace

Ceilings ceilings_of(Architecture arch) {
  if (is_blackwell(arch)) return {8.0, 2250, 3.1, false, "vendor data sheet, not measured"};
  // 4.27 TB/s is a read of 396 MiB, about one projection of 24 experts; a read of 2 GiB reaches
  // 4.50 TB/s. 680 TFLOP/s is cuBLAS on 16384 rows of the two projections.
  return {4.27, 680, 3.1, true, "measured on one H200"};
}

void fill_floors(Explanation& explanation) {
  const GemmDescriptor& d = explanation.decision.descriptor;
  const Ceilings ceilings = ceilings_of(d.arch);
  const int whole = default_num_sms(d.arch);
  const double share = (d.num_sms > 0 ? d.num_sms : whole) / static_cast<double>(whole);
  const double flop_per_us = ceilings.bf16_tflop_per_s * 1e6 * share;

  const std::int64_t rows = routed_rows(d);
  explanation.active_experts = reached_experts(d, rows);
  explanation.padded_rows = padded_to_tiles(rows, explanation.active_experts);
  explanation.padding_waste =
      explanation.padded_rows == 0
          ? 0
          : 1 - static_cast<double>(rows) / static_cast<double>(explanation.padded_rows);
  explanation.memory_floor_us =
      launch_bytes(d, rows, explanation.active_experts) / (ceilings.read_tb_per_s * 1e6);
  explanation.tensor_floor_us = operations(d, rows) / flop_per_us;
  explanation.predicted_us =
      std::max(explanation.memory_floor_us, operations(d, explanation.padded_rows) / flop_per_us) +
      ceilings.launch_us;
}

}  // namespace chord
