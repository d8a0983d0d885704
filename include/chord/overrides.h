// Overrides pin fields of the answer for experiments: CHORD_W4A16_BM, _BN, _BK, _CM, _CN, _STAGES,
// or Options::overrides. Each set field pins that field and the solver completes the rest. An
// impossible or malformed value is an error that names the variable. A value equal to the default
// gives the same key as none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "chord/abi/schedule.h"
#include "chord/export.h"
#include "chord/status.h"

namespace chord {

struct Overrides {
  std::optional<int> block_m{};     // CHORD_W4A16_BM
  std::optional<int> block_n{};     // CHORD_W4A16_BN
  std::optional<int> block_k{};     // CHORD_W4A16_BK
  std::optional<int> cluster_m{};   // CHORD_W4A16_CM, grouped families only
  std::optional<int> cluster_n{};   // CHORD_W4A16_CN, grouped families only
  std::optional<int> num_stages{};  // CHORD_W4A16_STAGES

  // Kernel fields of ours (chord-bench --kernel-fields); no environment variable.
  std::optional<abi::Mainloop> mainloop{};
  std::optional<int> tile_m{};
  std::optional<int> tile_n{};
  std::optional<int> widths{};
  std::optional<int> width_step{};
  std::optional<int> slices_per_stage{};
  std::optional<int> stages{};
  std::optional<abi::Dequantisation> dequantisation{};
  std::optional<abi::Split> split{};
  std::optional<abi::Release> release{};

  bool operator==(const Overrides&) const = default;
};

// Looks one variable up; empty optional when it is not set at all.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* variable)>;

CHORD_API Result<Overrides> parse_overrides(const EnvironmentLookup& environment);

// "tile_n=256": one kernel field by its name.
CHORD_API Status set_kernel_field(Overrides& overrides, std::string_view assignment);

}  // namespace chord
