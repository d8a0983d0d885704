// Loops over K by control flow, and the steps and atoms that they stand for.
#include "src/sass/loops.h"

#include <gtest/gtest.h>

#include "src/sass/kernel_counts.h"
#include "tests/sass/text.h"

namespace chord::sass {
namespace {

using sass_test::add_loop;
using sass_test::kFrameOfLoop;
using sass_test::text_of;
using Lines = std::vector<std::string>;

Result<std::vector<TensorLoop>> loops_of(const Lines& lines) {
  CHORD_TRY(const Listing listing, parse_listing(text_of(lines), "chord_kernel"));
  return tensor_loops(listing);
}

std::vector<int> sizes_of(const Lines& lines) {
  const Result<std::vector<TensorLoop>> loops = loops_of(lines);
  EXPECT_TRUE(loops.ok()) << loops.error().message();
  std::vector<int> sizes;
  if (loops.ok())
    for (const TensorLoop& loop : *loops) sizes.push_back(loop.instructions());
  return sizes;
}

std::string refusal_of(const Lines& lines) {
  const Result<std::vector<TensorLoop>> loops = loops_of(lines);
  return loops.ok() ? "" : loops.error().found;
}

TEST(TensorLoops, CountAWaitInPlaceOnce) {
  Lines lines{"NOP"};
  add_loop(lines, 0, 4, 5);
  lines.insert(lines.end(), {"EXIT"});
  const auto loops = loops_of(lines);
  ASSERT_TRUE(loops.ok()) << loops.error().message();
  ASSERT_EQ(loops->size(), 1u);
  EXPECT_EQ((*loops)[0].instructions(), kFrameOfLoop + 4 + 5);
  EXPECT_EQ((*loops)[0].count("HMMA"), 4);
  EXPECT_EQ((*loops)[0].count("LOP3"), 5);
  EXPECT_EQ((*loops)[0].count("SYNCS"), 1);
  EXPECT_EQ((*loops)[0].count("LDS"), 0);
}

// The retry stands behind EXIT and branches back into the middle of the loop.
TEST(TensorLoops, DoNotCountWhatLiesOutOfLine) {
  EXPECT_EQ(
      sizes_of({".L_0:", "SYNCS P0", "@!P0 BRA `(.L_2)", ".L_1:", "HMMA R0", "FFMA R1",
                "@P1 BRA `(.L_0)", "EXIT", ".L_2:", "SYNCS P0", "@!P0 BRA `(.L_2)", "BRA `(.L_1)"}),
      std::vector<int>{5});
}

// Two loops, and a branch back from behind into the first, over the second.
TEST(TensorLoops, ABranchBackIntoALoopIsNoLoop) {
  EXPECT_EQ(
      sizes_of({"@P2 BRA `(.L_3)", ".L_0:", "SYNCS P0", "@!P0 BRA `(.L_2)", ".L_1:", "HMMA R0",
                "@P1 BRA `(.L_0)", "EXIT", ".L_3:", "HMMA R0", "HMMA R0", "@P1 BRA `(.L_3)", "EXIT",
                ".L_2:", "SYNCS P0", "@!P0 BRA `(.L_2)", "BRA `(.L_1)"}),
      (std::vector<int>{4, 3}));
}

TEST(TensorLoops, AreTheInnermost) {
  Lines lines{".L_tile:", "NOP"};
  add_loop(lines, 0, 2, 1);
  lines.push_back("@P3 BRA `(.L_skip)");
  add_loop(lines, 1, 4, 1);
  lines.insert(lines.end(), {".L_skip:", "STG R0", "BRA `(.L_tile)"});
  EXPECT_EQ(sizes_of(lines), (std::vector<int>{kFrameOfLoop + 3, kFrameOfLoop + 5}));
}

TEST(TensorLoops, TwoBranchesToOneHeaderAreOneLoop) {
  EXPECT_EQ(sizes_of({".L_0:", "HMMA R0", "@P0 BRA `(.L_0)", "HMMA R0", "FFMA R1",
                      "@P1 BRA `(.L_0)", "EXIT"}),
            std::vector<int>{5});
}

TEST(TensorLoops, CodeThatNothingReachesIsNone) {
  EXPECT_EQ(
      sizes_of({".L_0:", "HMMA R0", "@P0 BRA `(.L_0)", "EXIT", ".L_1:", "BRA `(.L_1)", "NOP"}),
      std::vector<int>{2});
}

TEST(TensorLoops, ALoopOfOneInstructionIsOne) {
  EXPECT_EQ(sizes_of({".L_0:", "HMMA R0", ".L_1:", "@P0 BRA `(.L_1)", "@P1 BRA `(.L_0)", "EXIT"}),
            std::vector<int>{3});
}

TEST(TensorLoops, RefuseTensorInstructionsOutside) {
  Lines lines{"HMMA R0"};
  add_loop(lines, 0, 4, 5);
  lines.push_back("EXIT");
  EXPECT_NE(refusal_of(lines).find("1 of 5 tensor"), std::string::npos) << refusal_of(lines);
  // Between the inner and the outer loop.
  EXPECT_NE(refusal_of({".L_0:", "HMMA R0", ".L_1:", "HMMA R0", "@P0 BRA `(.L_1)",
                        "@P1 BRA `(.L_0)", "EXIT"}),
            "");
  // Of the loop, but out of line.
  EXPECT_NE(refusal_of({".L_0:", "HMMA R0", "@P0 BRA `(.L_2)", ".L_1:", "@P1 BRA `(.L_0)", "EXIT",
                        ".L_2:", "HMMA R0", "BRA `(.L_1)"}),
            "");
}

TEST(TensorLoops, RefuseCodeWithoutTensorInstructions) {
  EXPECT_EQ(refusal_of({".L_0:", "FFMA R0", "@P0 BRA `(.L_0)", "EXIT"}),
            "the code has no HMMA or HGMMA instruction");
  EXPECT_NE(refusal_of({"HMMA R0", "EXIT"}), "");
}

constexpr abi::Schedule kTile16{.tile_m = 16, .tile_n = 512, .slices_per_stage = 2};

Lines kernel_with(const std::vector<std::pair<int, int>>& loops) {
  Lines lines{"NOP"};
  int number = 0;
  for (const auto& [mma, rest] : loops) {
    lines.push_back(fmt::format("@P5 BRA `(.L_after_{})", number));
    add_loop(lines, number, mma, rest);
    lines.push_back(fmt::format(".L_after_{}:", number));
    ++number;
  }
  lines.push_back("EXIT");
  return lines;
}

// 4 strips and 2 slices: 32 mma a step, and half an atom's strips twice over.
TEST(KernelCounts, StepsAndAtomsFollowFromTheSchedule) {
  const auto counts = kernel_counts(text_of(kernel_with({{64, 100}, {32, 70}})), kTile16);
  ASSERT_TRUE(counts.ok()) << counts.error().message();
  ASSERT_EQ(counts->loops.size(), 2u);
  EXPECT_EQ(counts->loops[0].steps, 1);
  EXPECT_EQ(counts->loops[0].instructions, 105);
  EXPECT_DOUBLE_EQ(counts->loops[0].instructions_per_atom, 52.5);
  EXPECT_EQ(counts->loops[0].count("LOP3"), 70);
  EXPECT_EQ(counts->loops[1].steps, 2);
  EXPECT_DOUBLE_EQ(counts->loops[1].instructions_per_atom, 167 / 2.0);
  EXPECT_EQ(counts->code_bytes, 16 * (1 + 1 + 167 + 1 + 105 + 1));
}

TEST(KernelCounts, ANarrowTileHasFewerStripsInATurn) {
  abi::Schedule narrow = kTile16;
  narrow.tile_n = 128;
  narrow.slices_per_stage = 1;
  const auto counts = kernel_counts(text_of(kernel_with({{8, 9}, {4, 9}})), narrow);
  ASSERT_TRUE(counts.ok()) << counts.error().message();
  EXPECT_EQ(counts->loops[0].steps, 1);
  EXPECT_DOUBLE_EQ(counts->loops[0].instructions_per_atom, 4 * 16);
}

TEST(KernelCounts, RefusesLoopsThatDoNotFitTheSchedule) {
  using Loops = std::vector<std::pair<int, int>>;
  for (const Loops& loops : {Loops{{64, 1}, {64, 1}},            // one of them is unrolled
                             Loops{{32, 1}},                     // none of all steps
                             Loops{{64, 1}, {128, 1}},           // both are unrolled
                             Loops{{33, 1}, {64, 1}},            // no whole number
                             Loops{{32, 1}, {64, 1}, {96, 1}}})  // more than the tile has
  {
    const auto counts = kernel_counts(text_of(kernel_with(loops)), kTile16);
    ASSERT_FALSE(counts.ok()) << loops.size();
    EXPECT_EQ(counts.error().code, ErrorCode::unsupported);
    EXPECT_NE(counts.error().found.find(fmt::format("{}", loops[0].first)), std::string::npos);
  }
}

// Two loops of 64 wgmma steps of two shapes, as text: 2 strips, 2 slices, 4 steps of k16.
Lines wgmma_kernel(const char* first, const char* second, int count) {
  Lines lines{"NOP"};
  int number = 0;
  for (const char* shape : {first, second}) {
    lines.push_back(fmt::format("@P5 BRA `(.L_after_{})", number));
    lines.push_back(fmt::format(".L_loop_{}:", number));
    for (int i = 0; i < count; ++i) lines.push_back(fmt::format("HGMMA.{} R24, R104", shape));
    lines.push_back(fmt::format("@P1 BRA `(.L_loop_{})", number));
    lines.push_back(fmt::format(".L_after_{}:", number));
    ++number;
  }
  lines.push_back("EXIT");
  return lines;
}

TEST(KernelCounts, WidthsOfAWgmmaKernelAreNamedByItsInstructions) {
  const abi::Schedule schedule{
      .mainloop = abi::Mainloop::wgmma, .tile_m = 96, .tile_n = 256, .widths = 2, .width_step = 16};
  const auto counts_of = [&](const char* first, const char* second, int count) {
    return kernel_counts(text_of(wgmma_kernel(first, second, count)), schedule);
  };
  const auto counts = counts_of("64x96x16.F32.BF16", "64x80x16.F32.BF16", 16);
  ASSERT_TRUE(counts.ok()) << counts.error().message();
  ASSERT_EQ(counts->loops.size(), 2u);
  EXPECT_EQ(counts->loops[0].steps, 10);
  EXPECT_EQ(counts->loops[1].steps, 12);
  EXPECT_DOUBLE_EQ(counts->loops[1].instructions_per_atom, 17);
  EXPECT_FALSE(counts_of("64x96x16.F32.BF16", "64x72x16.F32.BF16", 16).ok()) << "no such width";
  EXPECT_FALSE(counts_of("64x96x16.F32.BF16", "64x80x16.F32.BF16", 8).ok()) << "half of the work";
  EXPECT_FALSE(counts_of("64x96x16.F32.BF16", "64x96x16.F32.BF16", 16).ok()) << "one width twice";
}

TEST(KernelCounts, RefusesATextOfNothing) {
  EXPECT_EQ(kernel_counts("", kTile16).error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace chord::sass
