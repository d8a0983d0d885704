// Any published schedule maps to kernel fields that run, keeps block_m, and tells what it drops.
#include <algorithm>
#include <optional>

#include "heuristics/kernel_mapping.h"
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

GemmDescriptor shape(std::int64_t n, std::int64_t k, Architecture arch = Architecture::sm_90a) {
  GemmDescriptor d;
  d.n = n;
  d.k = k;
  d.arch = arch;
  return d;
}

PublishedSchedule with_block_m(int block_m) {
  PublishedSchedule schedule;
  schedule.block_m = block_m;
  schedule.block_n = 256;
  schedule.block_k = 64;
  schedule.num_stages = 4;
  return schedule;
}

const Unhonoured* find(const std::vector<Unhonoured>& all, const std::string& field) {
  for (const Unhonoured& one : all)
    if (one.field == field) return &one;
  return nullptr;
}

TEST(Mapping, IsWellFormedForEveryBlockMAndShape) {
  for (int block_m = 8; block_m <= 256; block_m += 8)
    for (const std::int64_t n : {64, 128, 192, 256, 320, 512, 1024, 4096, 7168, 1 << 20})
      for (const std::int64_t k : {64, 128, 192, 256, 2048, 7168})
        for (const Architecture arch :
             {Architecture::sm_90a, Architecture::sm_100a, Architecture::sm_103a}) {
          const auto mapping = map_to_kernel(shape(n, k, arch), with_block_m(block_m), {});
          ASSERT_TRUE(mapping.ok()) << error_text(mapping);
          EXPECT_TRUE(abi::is_well_formed(mapping->kernel)) << block_m << " " << n << "x" << k;
          EXPECT_EQ(mapping->kernel.block_m, block_m);
          EXPECT_LE(mapping->kernel.slices_per_stage * 64, std::max<std::int64_t>(k, 128));
        }
}

TEST(Mapping, TileFollowsBlockM) {
  struct Case {
    int block_m, tile_m, tile_n, stages;
  };
  for (const Case& c : {Case{8, 16, 512, 3}, Case{16, 16, 512, 3}, Case{24, 24, 512, 3},
                        Case{32, 32, 512, 3}, Case{40, 40, 512, 3}, Case{256, 40, 512, 3}}) {
    const KernelSchedule kernel =
        kernel_fields(shape(4096, 7168), with_block_m(c.block_m), {}).value();
    EXPECT_EQ(kernel.tile_m, c.tile_m) << c.block_m;
    EXPECT_EQ(kernel.tile_n, c.tile_n) << c.block_m;
    EXPECT_EQ(kernel.stages, c.stages) << c.block_m;
    EXPECT_EQ(kernel.slices_per_stage, 2);
    EXPECT_EQ(kernel.split, abi::Split::automatic);
  }
}

TEST(Mapping, TileHoldsTheRowsOfNearlyEveryExpert) {
  GemmDescriptor d = shape(4096, 7168);
  const auto tile_m = [&](std::int64_t experts, std::int64_t rows, int block_m = 8) {
    d.experts = experts;
    d.rows = rows;
    return kernel_fields(d, with_block_m(block_m), {}).value().tile_m;
  };
  EXPECT_EQ(tile_m(48, 160), 16);
  EXPECT_EQ(tile_m(48, 468), 16);  // 9.75 rows per expert, and 2 * sqrt(9.75) = 6.2
  EXPECT_EQ(tile_m(48, 469), 24);
  EXPECT_EQ(tile_m(48, 768), 24);
  EXPECT_EQ(tile_m(12, 160), 24);
  EXPECT_EQ(tile_m(384, 256), 16);
  EXPECT_EQ(tile_m(48, 160, 32), 32) << "a block is one tile";
  d.family = Family::grouped_masked;
  const auto masked = [&](std::int64_t expected_m) {
    d.expected_m = expected_m;
    return kernel_fields(d, with_block_m(8), {}).value().tile_m;
  };
  EXPECT_EQ(masked(9), 16);
  EXPECT_EQ(masked(10), 24);
  EXPECT_EQ(masked(16), 24);
  d.arch = Architecture::sm_103a;
  EXPECT_EQ(masked(22), 32);
  EXPECT_EQ(masked(23), 40);
}

TEST(Mapping, BehindSixteenRowsPerExpertWgmmaTilesHoldTheRowsOfNearlyEveryExpert) {
  GemmDescriptor d = shape(4096, 7168);
  d.experts = 48;
  const auto fields = [&](std::int64_t rows) {
    d.rows = d.expected_m = rows;
    return kernel_fields(d, with_block_m(64), {}).value();
  };
  EXPECT_EQ(fields(768).mainloop, abi::Mainloop::mma);
  struct Case {
    Family family;
    std::int64_t rows;
    int tile_m, tile_n, widths;
  };
  for (const Case& c : {Case{Family::indexed, 769, 32, 512, 3},
                        {Family::indexed, 1024, 32, 512, 3},
                        {Family::indexed, 2048, 56, 256, 4},
                        {Family::indexed, 4096, 104, 256, 4},
                        {Family::indexed, 8192, 104, 256, 4},  // 171 rows: two tiles
                        {Family::indexed, 16384, 128, 256, 3},
                        {Family::indexed, kMaxTableRows, 128, 256, 3},
                        {Family::grouped_masked, 17, 24, 512, 3},
                        {Family::grouped_masked, 30, 40, 512, 3},
                        {Family::grouped_masked, 64, 88, 256, 4},
                        {Family::grouped_contiguous, 48 * 128, 128, 256, 3},
                        {Family::grouped_contiguous, 48 * 512, 128, 256, 3}}) {
    d.family = c.family;
    const KernelSchedule kernel = fields(c.rows);
    EXPECT_EQ(kernel.mainloop, abi::Mainloop::wgmma) << c.rows;
    EXPECT_EQ(kernel.tile_m, c.tile_m) << c.rows;
    EXPECT_EQ(kernel.tile_n, c.tile_n) << c.rows;
    EXPECT_EQ(kernel.widths, c.widths) << c.rows;
  }
  d.arch = Architecture::sm_100a;
  EXPECT_EQ(fields(16384).mainloop, abi::Mainloop::mma);
}

TEST(Mapping, RowsStayWhereAllOfKFitsIntoSharedMemory) {
  GemmDescriptor d = shape(7168, 256);
  d.family = Family::indexed;
  d.experts = 384;
  struct Case {
    std::int64_t rows;
    int tile_m, tile_n, widths, width_step, stages, buffers;
  };
  for (const Case& c : {Case{384 * 5 + 1, 48, 128, 4, 8, 6, 2},
                        {1024 * 8, 48, 128, 4, 8, 6, 2},
                        {2048 * 8, 64, 128, 4, 8, 6, 2},
                        {4096 * 8, 104, 128, 4, 8, 4, 2},
                        {8192 * 8, 208, 64, 3, 16, 8, 1},
                        {16384 * 8, 208, 64, 3, 16, 8, 1}}) {
    d.rows = c.rows;
    const KernelSchedule kernel = kernel_fields(d, with_block_m(64), {}).value();
    EXPECT_EQ(kernel.mainloop, abi::Mainloop::resident) << c.rows;
    EXPECT_EQ(kernel.tile_m, c.tile_m) << c.rows;
    EXPECT_EQ(kernel.tile_n, c.tile_n) << c.rows;
    EXPECT_EQ(kernel.widths, c.widths) << c.rows;
    EXPECT_EQ(kernel.width_step, c.width_step) << c.rows;
    EXPECT_EQ(kernel.stages, c.stages) << c.rows;
    EXPECT_EQ(kernel.slices_per_stage, 4) << c.rows;
    EXPECT_EQ(abi::row_buffers(kernel), c.buffers) << c.rows;
  }
  d.rows = 384 * 5;
  EXPECT_EQ(kernel_fields(d, with_block_m(64), {})->mainloop, abi::Mainloop::mma);
  d.rows = 1024 * 8;
  d.k = 320;
  EXPECT_EQ(kernel_fields(d, with_block_m(64), {})->mainloop, abi::Mainloop::wgmma);
  for (const std::int64_t k : {64, 128, 192}) {
    d.k = k;
    EXPECT_EQ(kernel_fields(d, with_block_m(64), {})->slices_per_stage, k / 64);
  }
  d.k = 256;
  d.arch = Architecture::sm_100a;
  EXPECT_EQ(kernel_fields(d, with_block_m(64), {})->mainloop, abi::Mainloop::mma);
}

TEST(Mapping, APinThatResidentRowsCanNotHonourIsRefused) {
  GemmDescriptor d = shape(7168, 256);
  d.family = Family::indexed;
  d.experts = 384;
  d.rows = 8192;
  Overrides pins;
  pins.slices_per_stage = 2;
  EXPECT_REFUSED(kernel_fields(d, with_block_m(64), pins), "resident", "slices_per_stage=2",
                 "K / 64");
  pins = {};
  pins.stages = 5;
  EXPECT_REFUSED(kernel_fields(d, with_block_m(64), pins), "resident", "stages even");
  d.k = 320;
  pins = {};
  pins.mainloop = abi::Mainloop::resident;
  EXPECT_REFUSED(kernel_fields(d, with_block_m(64), pins), "resident", "K at most 256");
}

TEST(Mapping, TileChangesOnlyBehindALimit) {
  for (const std::int64_t k : {256, 7168})
    for (const Family family :
         {Family::indexed, Family::grouped_contiguous, Family::grouped_masked})
      for (const std::int64_t experts : {1, 12, 48, 384}) {
        GemmDescriptor d = shape(4096, k);
        d.family = family;
        d.experts = experts;
        const std::vector<std::int64_t> limits = tile_limits(d);
        EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
        std::optional<KernelSchedule> before;
        for (std::int64_t rows = 1; rows < 400 * experts; ++rows) {
          d.rows = d.expected_m = rows;
          const KernelSchedule kernel = kernel_fields(d, with_block_m(8), {}).value();
          if (before && !(kernel == *before)) {
            ASSERT_TRUE(std::binary_search(limits.begin(), limits.end(), rows - 1))
                << name(family) << " " << experts << " experts, " << rows;
          }
          before = kernel;
        }
      }
}

TEST(Mapping, TileIsNotWiderThanNNeeds) {
  const auto tile_n = [](std::int64_t n) {
    return kernel_fields(shape(n, 7168), with_block_m(8), {}).value().tile_n;
  };
  EXPECT_EQ(tile_n(64), 128);
  EXPECT_EQ(tile_n(128), 128);
  EXPECT_EQ(tile_n(192), 256);
  EXPECT_EQ(tile_n(256), 256);
  EXPECT_EQ(tile_n(320), 512);
  EXPECT_EQ(tile_n(512), 512);
}

TEST(Mapping, OneSliceOfDepthMakesOneSlicePerStage) {
  EXPECT_EQ(kernel_fields(shape(4096, 64), with_block_m(8), {})->slices_per_stage, 1);
  EXPECT_EQ(kernel_fields(shape(4096, 128), with_block_m(8), {})->slices_per_stage, 2);
}

TEST(Mapping, FusedDequantisationIsForTheMeasuredArchitecture) {
  const auto form = [](Architecture arch) {
    return kernel_fields(shape(4096, 7168, arch), with_block_m(8), {})->dequantisation;
  };
  EXPECT_EQ(form(Architecture::sm_90a), abi::Dequantisation::fused);
  EXPECT_EQ(form(Architecture::sm_100a), abi::Dequantisation::ordinary);
  EXPECT_EQ(form(Architecture::sm_103a), abi::Dequantisation::ordinary);
}

TEST(Mapping, TellsEveryFieldOfAWgmmaScheduleThatItDrops) {
  const Decision decision =
      *solve(indexed("h200_prefill_ep8", 7168, 2048, 48, 1537), {}, Policy::published);
  ASSERT_EQ(decision.kernel.mainloop, abi::Mainloop::wgmma);
  for (const char* field : {"swap_ab", "block_k", "ctas_per_sm", "stream_k"})
    EXPECT_NE(find(decision.unhonoured, field), nullptr) << field;
  const Unhonoured& swap = *find(decision.unhonoured, "swap_ab");
  EXPECT_EQ(swap.published, "false");
  EXPECT_NE(swap.reason.find("A operand"), std::string::npos);
  EXPECT_EQ(find(decision.unhonoured, "block_m"), nullptr);
  EXPECT_EQ(find(decision.unhonoured, "block_n"), nullptr) << "256 columns, as published";
}

TEST(Mapping, TellsClustersAndSharedBytesOfGroupedSchedules) {
  const Decision decision = *solve(masked(4096, 7168, 48, 200), {}, Policy::published);
  ASSERT_EQ(decision.schedule.cluster_n, 2);
  EXPECT_EQ(find(decision.unhonoured, "cluster_m"), nullptr);
  ASSERT_NE(find(decision.unhonoured, "cluster_n"), nullptr);
  EXPECT_EQ(find(decision.unhonoured, "cluster_n")->published, "2");
  const Unhonoured* smem = find(decision.unhonoured, "smem_bytes");
  ASSERT_NE(smem, nullptr);
  EXPECT_EQ(smem->published, "219392");
  EXPECT_EQ(smem->kernel, std::to_string(abi::shared_bytes(decision.kernel)));
  EXPECT_EQ(find(decision.unhonoured, "mainloop"), nullptr) << "wgmma, as published";
}

TEST(Mapping, ASwappedScheduleKeepsItsMainloop) {
  const Decision decision =
      *solve(indexed("h200_decode_ep8", 4096, 7168, 48, 160), {}, Policy::published);
  EXPECT_EQ(find(decision.unhonoured, "swap_ab"), nullptr);
  EXPECT_EQ(find(decision.unhonoured, "mainloop"), nullptr);
}

TEST(Mapping, OnBlackwellTheDroppedOperandOrderIsNotAboutWgmma) {
  const Decision decision =
      *solve(indexed("blackwell_decode_ep8", 4096, 7168, 48, 400), {}, Policy::published);
  ASSERT_NE(find(decision.unhonoured, "swap_ab"), nullptr);
  EXPECT_EQ(find(decision.unhonoured, "swap_ab")->reason.find("wgmma"), std::string::npos);
}

TEST(Mapping, APinnedSplitThatIsThePublishedOneIsHonoured) {
  Overrides overrides;
  overrides.split = abi::Split::whole_tiles;
  const GemmDescriptor d = indexed("h200_decode_ep8", 4096, 7168, 48, 160);
  EXPECT_EQ(find(solve(d, overrides, Policy::published)->unhonoured, "stream_k"), nullptr);
  EXPECT_NE(find(solve(d, {}, Policy::published)->unhonoured, "stream_k"), nullptr);
}

}  // namespace
}  // namespace chord::heuristics
