// Today's kernel is one persistent mma kernel: what is published for wgmma, clusters or several
// CTAs per SM maps to it and is reported.
#include "heuristics/kernel_mapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "heuristics/pins.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

// Blocks of one expert are merged up to tile_m, and an expert with more rows has its weights read
// once per tile. So a tile holds a block of up to 40 rows (larger ones are walked), and the rows of
// nearly every expert of a random routing: the mean and two standard deviations of it. 40 rows are
// the widest that 512 columns leave registers for; tiles of 256 columns lose, since a warp then has
// half the weight rows. (H200, EP32 gate/up at 50 tokens, 33 rows per expert: 140 us in tiles of
// 16, 82 in tiles of 40. EP8 gate/up masked, 32 and 64 rows: 267 and 522 us at 32 x 512, 358 and
// 574 at 64 x 256.)
struct TileWidth {
  int tile_m;
  int quarter_rows;  // the largest mean, in quarters of a row: mean + 2 sqrt(mean) <= tile_m
};
constexpr TileWidth kTileWidths[] = {{16, 39}, {24, 64}, {32, 90}};
constexpr int kWidestTile = 40;

// Of (rows or expected_m) at which a mean of so many quarters is reached.
std::int64_t last_rows(const GemmDescriptor& d, int quarter_rows) {
  const std::int64_t experts = d.family == Family::grouped_masked ? 1 : d.experts;
  return experts * quarter_rows / 4;
}

int tile_m_for(const GemmDescriptor& d, int block_m) {
  for (const TileWidth& width : kTileWidths)
    if (block_m <= width.tile_m && axis_value(d) <= last_rows(d, width.quarter_rows))
      return width.tile_m;
  return kWidestTile;
}

// As wide as the accumulators allow, but not wider than N needs.
int tile_n_for(int tile_m, std::int64_t n) {
  int tile_n = tile_m <= kWidestTile ? 512 : 256;
  while (tile_n > 128 && tile_n / 2 >= n) tile_n /= 2;
  return tile_n;
}

// The fused form is exact where BF16 fma keeps subnormals; that was measured on SM90 only.
abi::Dequantisation dequantisation_for(Architecture arch) {
  return is_blackwell(arch) ? abi::Dequantisation::ordinary : abi::Dequantisation::fused;
}

int stages_for(KernelSchedule kernel) {
  kernel.stages = kernel.tile_n == 512 ? 3 : 4;
  while (kernel.stages > 2 && abi::shared_bytes(kernel) > abi::kMaxSharedBytes) --kernel.stages;
  return kernel.stages;
}

std::string fields_text(const KernelSchedule& kernel) {
  return fmt::format("block_m {}, tile_m {}, tile_n {}, slices_per_stage {}, stages {}",
                     kernel.block_m, kernel.tile_m, kernel.tile_n, kernel.slices_per_stage,
                     kernel.stages);
}

Error can_not_run(const KernelSchedule& kernel, const Overrides& pins) {
  std::string found = "the kernel has no such shape";
  if (abi::accumulators_per_thread(kernel) > abi::max_accumulators(kernel.dequantisation))
    found =
        fmt::format("{} accumulators per thread, at most {}", abi::accumulators_per_thread(kernel),
                    abi::max_accumulators(kernel.dequantisation));
  else if (abi::shared_bytes(kernel) > abi::kMaxSharedBytes)
    found = fmt::format("{} bytes of shared memory, at most {}", abi::shared_bytes(kernel),
                        abi::kMaxSharedBytes);
  const std::string pinned = pinned_text(pins);
  return Error{ErrorCode::invalid_argument,
               fields_text(kernel) + (pinned.empty() ? "" : " (" + pinned + ")"), std::move(found),
               "tile_m is a multiple of 8 in 8..64, tile_n 128, 256 or 512, slices_per_stage 1..4, "
               "stages 2..8"};
}

std::string on_off(bool value) { return value ? "true" : "false"; }

class Unkept {
 public:
  void add(const char* field, std::string published, std::string kernel, const char* reason) {
    all.push_back({field, std::move(published), std::move(kernel), reason});
  }
  void differing(const char* field, std::int64_t published, std::int64_t kernel,
                 const char* reason) {
    if (published != kernel) add(field, std::to_string(published), std::to_string(kernel), reason);
  }

  std::vector<Unhonoured> all;
};

void report_mainloop(const GemmDescriptor& d, const PublishedSchedule& schedule, Unkept& unkept) {
  constexpr const char* kWgmma =
      "wgmma mainloop: maps to the mma kernel until a wgmma kernel exists";
  if (!schedule.swap_ab)
    unkept.add("mainloop", "wgmma", "mma", kWgmma);
  else if (!*schedule.swap_ab)
    unkept.add(
        "swap_ab", "false", "true",
        is_blackwell(d.arch) ? "the mma kernel always swaps: weights are the A operand" : kWgmma);
}

void report_split(const PublishedSchedule& schedule, const KernelSchedule& kernel, Unkept& unkept) {
  if (!schedule.stream_k) return;
  const auto asked = *schedule.stream_k ? abi::Split::even : abi::Split::whole_tiles;
  if (kernel.split != asked)
    unkept.add(
        "stream_k", on_off(*schedule.stream_k), name(kernel.split),
        kernel.split == abi::Split::automatic
            ? "each launch decides from its actual counts between whole tiles and an even split"
            : "the split of the kernel is pinned");
}

}  // namespace

std::vector<std::int64_t> tile_limits(const GemmDescriptor& descriptor) {
  std::vector<std::int64_t> limits;
  for (const TileWidth& width : kTileWidths)
    limits.push_back(last_rows(descriptor, width.quarter_rows));
  return limits;
}

Result<KernelSchedule> kernel_fields(const GemmDescriptor& descriptor,
                                     const PublishedSchedule& schedule, const Overrides& pins) {
  KernelSchedule kernel;
  kernel.mainloop = abi::Mainloop::mma;
  kernel.block_m = schedule.block_m;
  kernel.tile_m = pins.tile_m.value_or(tile_m_for(descriptor, schedule.block_m));
  kernel.tile_n = pins.tile_n.value_or(tile_n_for(kernel.tile_m, descriptor.n));
  kernel.slices_per_stage = pins.slices_per_stage.value_or(descriptor.k == abi::kAtomDepth ? 1 : 2);
  kernel.stages = pins.stages.value_or(stages_for(kernel));
  kernel.dequantisation = pins.dequantisation.value_or(dequantisation_for(descriptor.arch));
  kernel.split = pins.split.value_or(abi::Split::automatic);
  kernel.release = pins.release.value_or(abi::Release::elected_lane);
  if (!abi::is_well_formed(kernel)) return can_not_run(kernel, pins);
  return kernel;
}

std::vector<Unhonoured> unhonoured_fields(const GemmDescriptor& d,
                                          const PublishedSchedule& schedule,
                                          const KernelSchedule& kernel) {
  Unkept unkept;
  unkept.all.reserve(8);
  report_mainloop(d, schedule, unkept);
  unkept.differing("block_n", schedule.block_n, kernel.tile_n,
                   "tile_n follows from tile_m and N: one weight operation per stage");
  unkept.differing("block_k", schedule.block_k, kernel.slices_per_stage * abi::kAtomDepth,
                   "a stage is slices_per_stage slices of 64");
  unkept.differing("num_stages", schedule.num_stages, kernel.stages,
                   "about 120 KB in flight are enough, more stages do not help");
  if (schedule.ctas_per_sm)
    unkept.differing("ctas_per_sm", *schedule.ctas_per_sm, 1,
                     "persistent: one CTA per SM walks the whole work list");
  report_split(schedule, kernel, unkept);
  if (schedule.cluster_m)
    unkept.differing("cluster_m", *schedule.cluster_m, 1, "the mma kernel has no clusters");
  if (schedule.cluster_n)
    unkept.differing("cluster_n", *schedule.cluster_n, 1, "the mma kernel has no clusters");
  if (schedule.smem_bytes)
    unkept.differing("smem_bytes", *schedule.smem_bytes, abi::shared_bytes(kernel),
                     "of the published kernel; a launch requests what this kernel lays out");
  return std::move(unkept.all);
}

Result<KernelMapping> map_to_kernel(const GemmDescriptor& descriptor,
                                    const PublishedSchedule& schedule, const Overrides& overrides) {
  KernelMapping mapping;
  CHORD_TRY(mapping.kernel, kernel_fields(descriptor, schedule, overrides));
  mapping.unhonoured = unhonoured_fields(descriptor, schedule, mapping.kernel);
  return mapping;
}

}  // namespace chord::heuristics
