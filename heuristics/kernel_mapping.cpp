// Three persistent kernels: mma for few rows and for Blackwell; on Hopper for the rest wgmma, and
// resident for small K. What is published for clusters, several CTAs per SM or another order of
// operands maps to them and is reported.
#include "heuristics/kernel_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heuristics/pins.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

// mma. Blocks of one expert are merged up to tile_m, and an expert with more rows has its weights
// read once per tile. So a tile holds a block of up to 40 rows (larger ones are walked), and the
// rows of nearly every expert of a random routing: the mean and two standard deviations of it. 40
// rows are the widest that 512 columns leave registers for; tiles of 256 columns lose, since a warp
// then has half the weight rows. (H200, EP32 gate/up at 50 tokens, 33 rows per expert: 140 us in
// tiles of 16, 82 in tiles of 40.)
struct TileWidth {
  int tile_m;
  int quarter_rows;  // the largest mean, in quarters of a row: mean + 2 sqrt(mean) <= tile_m
};
constexpr TileWidth kTileWidths[] = {{16, 39}, {24, 64}, {32, 90}};
constexpr int kWidestTile = 40;

// wgmma, above kMmaRows: EP8 gate/up masked on H200, exact and drawn, took at 16 rows 206 and 218
// us by mma, 215 and 220 by wgmma, and at 32 rows 255 and 270, 237 and 248. Random routing: 210 and
// 217 us at 10.7 rows, 222 and 218 at 16, 241 and 224 at 21.
//
// An expert's rows are cut into `tiles` even tiles of at most tile_m rows; a kernel holds
// code for tile_m and a few widths below it, so that a tile is seldom wider than its rows. Wider
// than 128 leaves no registers for the overlap of dequantisation (H200, EP8 gate/up at 8192 rows,
// 171 per expert: 848 us in one tile of up to 176, 721 in two of up to 112).
struct WgmmaTile {
  int tiles;
  int tile_m;
};
constexpr WgmmaTile kWgmmaTiles[] = {{1, 24},  {1, 32},  {1, 40}, {1, 56}, {1, 72}, {1, 88},
                                     {1, 104}, {1, 128}, {2, 72}, {2, 88}, {2, 104}};
constexpr int kWidestWgmmaTile = 128;
constexpr int kWidestSwigluTile = 104;  // at most 8 bytes of a thread spill, 24 in wider ones
constexpr int kMostGatheredRows = 160;  // a thread that gathers has a pointer for every eighth
constexpr int kWidest512Columns = 40;   // rows of a tile of 512 columns; of 256 above

// resident, where a tile's rows fit into shared memory with all of K. Panels of 64 columns take the
// widest tiles, which read the weights least often. (H200, TP8 down. At 171 rows per expert: 446 us
// in one tile of up to 208 rows, 501 in two of up to 104 with 128 columns. At 341 rows: 862 in two
// of up to 208, 973 in four of 128 columns. At 85 rows: 257 in a tile of 128 columns, 287 of 64.)
constexpr int kMostResidentDepth = 256;
// Up to so many rows per expert by mma. (5.3 rows: 124.5 us by mma, 123.3 resident; 10.7: 141 and
// 131; 16: 159 and 139.)
constexpr int kMmaRowsBesideResident = 5;
constexpr WgmmaTile kResidentTiles[] = {{1, 48},  {1, 64},  {1, 104}, {1, 144},
                                        {1, 176}, {1, 208}, {2, 144}, {2, 176}};
constexpr int kWidestResidentTile = 208;
constexpr int kWidest128Columns = 104;
constexpr int kWideResidentStep = 16;

// A tile's rows and all of their K fit into shared memory. (SwiGLU wants gate and up in one warp,
// which narrow panels do not give.)
bool can_be_resident(const GemmDescriptor& d) {
  return d.k <= kMostResidentDepth && d.epilogue != Epilogue::swiglu;
}

std::int64_t experts_of_axis(const GemmDescriptor& d) {
  return d.family == Family::grouped_masked ? 1 : d.experts;
}

// Of (rows or expected_m) at which a mean of so many quarters is reached.
std::int64_t last_rows(const GemmDescriptor& d, int quarter_rows) {
  return experts_of_axis(d) * quarter_rows / 4;
}

// ... at which nearly every expert has at most `most` rows: mean + 2 sqrt(mean) of a random
// routing; 1.3 times expected_m, which an engine gives for all experts; the mean itself of
// contiguous rows, which come padded and even.
std::int64_t last_rows_below(const GemmDescriptor& d, int most) {
  double mean = most;
  if (d.family == Family::grouped_masked) mean = most / 1.3;
  if (d.family == Family::indexed) mean = std::pow(std::sqrt(1.0 + most) - 1.0, 2);
  return static_cast<std::int64_t>(mean * static_cast<double>(experts_of_axis(d)));
}

abi::Mainloop mainloop_for(const GemmDescriptor& d) {
  if (is_blackwell(d.arch) || axis_value(d) <= last_rows(d, 4 * most_mma_rows(d)))
    return abi::Mainloop::mma;
  return can_be_resident(d) ? abi::Mainloop::resident : abi::Mainloop::wgmma;
}

int mma_tile_m(const GemmDescriptor& d, int block_m) {
  for (const TileWidth& width : kTileWidths)
    if (block_m <= width.tile_m && axis_value(d) <= last_rows(d, width.quarter_rows))
      return width.tile_m;
  return kWidestTile;
}

template <std::size_t Count>
int tile_m_of(const WgmmaTile (&tiles)[Count], int widest, const GemmDescriptor& d) {
  for (const WgmmaTile& tile : tiles)
    if (axis_value(d) <= last_rows_below(d, tile.tiles * tile.tile_m)) return tile.tile_m;
  return widest;
}

int tile_m_for(const GemmDescriptor& d, abi::Mainloop mainloop, int block_m) {
  switch (mainloop) {
    case abi::Mainloop::mma:
      return mma_tile_m(d, block_m);
    case abi::Mainloop::wgmma:
      return std::min(tile_m_of(kWgmmaTiles, kWidestWgmmaTile, d),
                      d.epilogue == Epilogue::swiglu ? kWidestSwigluTile : kWidestWgmmaTile);
    case abi::Mainloop::resident:
      return tile_m_of(kResidentTiles, kWidestResidentTile, d);
  }
  return kWidestTile;
}

// As wide as the accumulators allow, but not wider than N needs.
int tile_n_for(const KernelSchedule& kernel, std::int64_t n) {
  if (abi::is_resident(kernel)) return kernel.tile_m <= kWidest128Columns && n > 64 ? 128 : 64;
  const int widest = kernel.mainloop == abi::Mainloop::wgmma ? kWidest512Columns : kWidestTile;
  const int narrowest =
      kernel.mainloop == abi::Mainloop::wgmma && kernel.epilogue == Epilogue::swiglu ? 256 : 128;
  int tile_n = kernel.tile_m <= widest ? 512 : 256;
  while (tile_n > narrowest && tile_n / 2 >= n) tile_n /= 2;
  return tile_n;
}

// Widths of a kernel that uses wgmma: as many as ptxas finds registers for.
int widths_for(const KernelSchedule& kernel) {
  if (kernel.mainloop == abi::Mainloop::mma) return 1;
  if (abi::is_resident(kernel))
    return std::clamp(kernel.tile_m / kernel.width_step, 1, kernel.tile_n == 64 ? 3 : 4);
  const int most = kernel.tile_n == 512 || kernel.tile_m > 112 ? 3 : 4;
  return std::clamp(kernel.tile_m / kernel.width_step, 1, most);
}

// The fused form is exact where BF16 fma keeps subnormals; that was measured on SM90 only.
abi::Dequantisation dequantisation_for(Architecture arch) {
  return is_blackwell(arch) ? abi::Dequantisation::ordinary : abi::Dequantisation::fused;
}

// As many as leave room for the rest; resident: also for the rows of the next tile, which a long
// run of narrow panels needs less.
int stages_for(KernelSchedule kernel) {
  const bool is_resident = abi::is_resident(kernel);
  const int buffers = !is_resident ? 0 : kernel.tile_n == 64 ? 1 : 2;
  const int fewest = is_resident ? 4 : 2;
  kernel.stages = abi::uses_wgmma(kernel) ? 8 : kernel.tile_n == 512 ? 3 : 4;
  while (kernel.stages > fewest &&
         (abi::row_buffers(kernel) < buffers || abi::shared_bytes(kernel) > abi::kMaxSharedBytes))
    kernel.stages -= is_resident ? abi::kConsumerGroups : 1;
  return kernel.stages;
}

std::string fields_text(const KernelSchedule& kernel) {
  return fmt::format(
      "{}, block_m {}, tile_m {}, tile_n {}, widths {} by {}, slices_per_stage {}, "
      "stages {}",
      name(kernel.mainloop), kernel.block_m, kernel.tile_m, kernel.tile_n, kernel.widths,
      kernel.width_step, kernel.slices_per_stage, kernel.stages);
}

// What abi::is_well_formed can not know.
bool is_for(const GemmDescriptor& d, const KernelSchedule& kernel) {
  if (kernel.mainloop == abi::Mainloop::mma) return true;
  if (is_blackwell(d.arch)) return false;
  if (abi::is_resident(kernel)) return d.k == kernel.slices_per_stage * abi::kAtomDepth;
  return d.family != Family::indexed || kernel.tile_m <= kMostGatheredRows;
}

const char* legal_fields(abi::Mainloop mainloop) {
  switch (mainloop) {
    case abi::Mainloop::mma:
      return "mma: tile_m is a multiple of 8 in 8..64, tile_n 128, 256 or 512, widths 1, "
             "width_step 8, slices_per_stage 1..4, stages 2..8";
    case abi::Mainloop::wgmma:
      return "wgmma: tile_m is a multiple of 8 in 8..256 (indexed: 160), its smallest width "
             "at least 8, tile_n 128, 256 or 512, slices_per_stage 1..4, stages 2..8, "
             "dequantisation fused or ordinary; sm_90a only";
    case abi::Mainloop::resident:
      return "resident: K at most 256 and slices_per_stage K / 64, tile_m a multiple of 8 in "
             "8..256, its smallest width at least 8, tile_n 64 or 128, stages even in 2..16, "
             "dequantisation fused or ordinary; sm_90a only";
  }
  return "";
}

Error can_not_run(const KernelSchedule& kernel, const Overrides& pins) {
  std::string found = "the kernel has no such shape";
  if (!abi::has_legal_epilogue(kernel))
    found = "epilogue swiglu is for mma, and for wgmma with tile_n 256 or 512";
  else if (abi::accumulators_per_thread(kernel) > abi::max_accumulators(kernel))
    found = fmt::format("{} accumulators per thread, at most {}",
                        abi::accumulators_per_thread(kernel), abi::max_accumulators(kernel));
  else if (abi::shared_bytes(kernel) > abi::kMaxSharedBytes)
    found = fmt::format("{} bytes of shared memory, at most {}", abi::shared_bytes(kernel),
                        abi::kMaxSharedBytes);
  const std::string pinned = pinned_text(pins);
  return Error{ErrorCode::invalid_argument,
               fields_text(kernel) + (pinned.empty() ? "" : " (" + pinned + ")"), std::move(found),
               legal_fields(kernel.mainloop)};
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

void report_mainloop(const PublishedSchedule& schedule, const KernelSchedule& kernel,
                     Unkept& unkept) {
  if (!schedule.swap_ab) {
    if (kernel.mainloop == abi::Mainloop::mma)
      unkept.add("mainloop", "wgmma", "mma",
                 "mma is faster for few rows, and the one for Blackwell");
  } else if (!*schedule.swap_ab) {
    unkept.add("swap_ab", "false", "true",
               "all kernels swap: dequantised weights are the A operand, in registers");
  }
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

int most_mma_rows(const GemmDescriptor& d) {
  return can_be_resident(d) ? kMmaRowsBesideResident : kMmaRows;
}

std::vector<std::int64_t> tile_limits(const GemmDescriptor& d) {
  std::vector<std::int64_t> limits;
  for (const TileWidth& width : kTileWidths) limits.push_back(last_rows(d, width.quarter_rows));
  if (is_blackwell(d.arch)) return limits;
  limits.push_back(last_rows(d, 4 * most_mma_rows(d)));
  const auto add = [&](const WgmmaTile& tile) {
    limits.push_back(last_rows_below(d, tile.tiles * tile.tile_m));
  };
  if (can_be_resident(d))
    std::for_each(std::begin(kResidentTiles), std::end(kResidentTiles), add);
  else
    std::for_each(std::begin(kWgmmaTiles), std::end(kWgmmaTiles), add);
  std::sort(limits.begin(), limits.end());
  return limits;
}

Result<KernelSchedule> kernel_fields(const GemmDescriptor& descriptor,
                                     const PublishedSchedule& schedule, const Overrides& pins) {
  KernelSchedule kernel;
  kernel.mainloop = pins.mainloop.value_or(mainloop_for(descriptor));
  const bool is_resident = abi::is_resident(kernel);
  kernel.epilogue = descriptor.epilogue;
  kernel.block_m = schedule.block_m;
  kernel.tile_m = pins.tile_m.value_or(tile_m_for(descriptor, kernel.mainloop, schedule.block_m));
  kernel.tile_n = pins.tile_n.value_or(tile_n_for(kernel, descriptor.n));
  kernel.width_step = pins.width_step.value_or(
      is_resident && kernel.tile_m > kWidest128Columns ? kWideResidentStep : 8);
  kernel.widths = pins.widths.value_or(widths_for(kernel));
  kernel.slices_per_stage = pins.slices_per_stage.value_or(
      is_resident ? static_cast<int>(std::min<std::int64_t>(descriptor.k / abi::kAtomDepth, 4))
                  : (descriptor.k == abi::kAtomDepth ? 1 : 2));
  kernel.dequantisation = pins.dequantisation.value_or(dequantisation_for(descriptor.arch));
  kernel.split = pins.split.value_or(abi::Split::automatic);
  kernel.release = pins.release.value_or(abi::Release::elected_lane);
  kernel.stages = pins.stages.value_or(stages_for(kernel));
  if (!abi::is_well_formed(kernel) || !is_for(descriptor, kernel)) return can_not_run(kernel, pins);
  return kernel;
}

std::vector<Unhonoured> unhonoured_fields(const PublishedSchedule& schedule,
                                          const KernelSchedule& kernel) {
  Unkept unkept;
  unkept.all.reserve(8);
  report_mainloop(schedule, kernel, unkept);
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
    unkept.differing("cluster_m", *schedule.cluster_m, 1, "the kernels have no clusters");
  if (schedule.cluster_n)
    unkept.differing("cluster_n", *schedule.cluster_n, 1, "the kernels have no clusters");
  if (schedule.smem_bytes)
    unkept.differing("smem_bytes", *schedule.smem_bytes, abi::shared_bytes(kernel),
                     "of the published kernel; a launch requests what this kernel lays out");
  return std::move(unkept.all);
}

Result<KernelMapping> map_to_kernel(const GemmDescriptor& descriptor,
                                    const PublishedSchedule& schedule, const Overrides& overrides) {
  KernelMapping mapping;
  CHORD_TRY(mapping.kernel, kernel_fields(descriptor, schedule, overrides));
  mapping.unhonoured = unhonoured_fields(schedule, mapping.kernel);
  return mapping;
}

}  // namespace chord::heuristics
