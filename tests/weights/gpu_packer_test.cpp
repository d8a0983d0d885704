// The GPU packer's own text, run on the CPU: the builtins that it uses become variables here, and
// the threads of a grid run one after the other, last one first.
#include <gtest/gtest.h>

#include <tuple>

#include "src/weights/pack_source.h"
#include "tests/weights/checkpoint.h"

struct FakeIndex {
  unsigned x = 0;
};
static FakeIndex blockIdx, blockDim, threadIdx;

static unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
  const unsigned long long old = *at;
  if (value < old) *at = value;
  return old;
}

#include "kernels/pack/pack.cuh"

namespace chord {
namespace {

using test::Checkpoint;
using test::Packed;

template <CodeSource Codes, ScaleSource Scales>
std::uint64_t run_grid(const Checkpoint& from, Packed& packed) {
  std::uint64_t status = abi::kPackStatusClean;
  const abi::PackParams p = weights::pack_params(
      from.source(Codes, Scales), from.shape, packed.weights.data(), packed.scales.data(), &status);
  blockDim.x = weights::kPackThreads;
  for (unsigned block = weights::pack_blocks(from.shape); block-- > 0;)
    for (unsigned thread = weights::kPackThreads; thread-- > 0;) {
      blockIdx.x = block;
      threadIdx.x = thread;
      device::pack<Codes, Scales>(p);
    }
  return status;
}

using GridRunner = std::uint64_t (*)(const Checkpoint&, Packed&);

template <CodeSource Codes>
constexpr GridRunner kRunners[] = {run_grid<Codes, ScaleSource::row_major>,
                                   run_grid<Codes, ScaleSource::k_major>};

GridRunner runner(CodeSource codes, ScaleSource scales) {
  const int scale = static_cast<int>(scales);
  switch (codes) {
    case CodeSource::codes_i32:
      return kRunners<CodeSource::codes_i32>[scale];
    case CodeSource::codes_u8:
      return kRunners<CodeSource::codes_u8>[scale];
    case CodeSource::words:
      return kRunners<CodeSource::words>[scale];
    default:
      return kRunners<CodeSource::words_k_major>[scale];
  }
}

TEST(GpuPacker, WritesTheBytesOfTheCpuPacker) {
  // 64 x 64 is half a block of threads: the other half must write nothing.
  for (const auto& [experts, n, k, order] : {std::tuple(1, 64, 64, RowOrder::plain),
                                             {3, 192, 320, RowOrder::plain},
                                             {1, 64, 64, RowOrder::gate_up},
                                             {3, 192, 320, RowOrder::gate_up}}) {
    const Checkpoint from = test::random_checkpoint(experts, n, k, 31 + n, order);
    for (const CodeSource codes : test::kCodeSources)
      for (const ScaleSource scales : test::kScaleSources) {
        Packed cpu(from.shape), gpu(from.shape);
        ASSERT_TRUE(pack_weights(from.source(codes, scales), from.shape, cpu.weights.data(),
                                 cpu.scales.data())
                        .ok());
        EXPECT_EQ(runner(codes, scales)(from, gpu), abi::kPackStatusClean);
        EXPECT_TRUE(cpu == gpu) << static_cast<int>(codes) << ' ' << static_cast<int>(scales);
      }
  }
}

TEST(GpuPacker, NamesTheOffenderThatTheCpuNames) {
  Checkpoint from = test::random_checkpoint(2, 128, 128, 8);
  from.scales[(1 * 128 + 3) * 4 + 2] = 0xff80;
  from.scales[(0 * 128 + 90) * 4 + 1] = 0x0001;
  from.codes[0] = 99;
  from.spell();
  for (const CodeSource codes : test::kCodeSources)
    for (const ScaleSource scales : test::kScaleSources) {
      Packed packed(from.shape);
      const Status cpu = pack_weights(from.source(codes, scales), from.shape, packed.weights.data(),
                                      packed.scales.data());
      const Status gpu = check_pack_status(runner(codes, scales)(from, packed), from.shape);
      ASSERT_FALSE(cpu.ok());
      ASSERT_FALSE(gpu.ok());
      EXPECT_EQ(gpu.error().message(), cpu.error().message());
      EXPECT_NE(cpu.error().message().find("expert 0, row 90, group 1"), std::string::npos);
    }
}

TEST(GpuPacker, RefusesCodesAboveFifteenAsTheCpuDoes) {
  Checkpoint from = test::random_checkpoint(2, 64, 128, 8);
  from.codes_i32[(1 * 64 + 9) * 128 + 77] = -3;
  from.codes_i32[(1 * 64 + 40) * 128 + 1] = 16;
  Packed packed(from.shape);
  const Status cpu = pack_weights(from.source(CodeSource::codes_i32, ScaleSource::row_major),
                                  from.shape, packed.weights.data(), packed.scales.data());
  const Status gpu = check_pack_status(
      runner(CodeSource::codes_i32, ScaleSource::row_major)(from, packed), from.shape);
  ASSERT_FALSE(gpu.ok());
  ASSERT_FALSE(cpu.ok());
  EXPECT_EQ(gpu.error().message(), cpu.error().message());
  EXPECT_NE(gpu.error().message().find("row 9, column 77"), std::string::npos);
}

TEST(GpuPacker, GridCoversTheLargestModelAndNoBlockIsIdle) {
  const PackedShape shape{.experts = 384, .n = 4096, .k = 7168};
  const std::int64_t chunks = shape.weight_bytes() / 16;
  const std::int64_t blocks = weights::pack_blocks(shape);
  EXPECT_GE(blocks * weights::kPackThreads, chunks);
  EXPECT_LT((blocks - 1) * weights::kPackThreads, chunks);
  EXPECT_EQ(weights::pack_blocks({.experts = 1, .n = 64, .k = 64}), 1u);
}

TEST(GpuPacker, SourceNamesItsSourcesAndTheEntry) {
  const std::string text = weights::pack_source(CodeSource::words_k_major, ScaleSource::k_major);
  EXPECT_NE(text.find("CodeSource::words_k_major, chord::abi::ScaleSource::k_major"),
            std::string::npos);
  EXPECT_NE(text.find("extern \"C\" __global__"), std::string::npos);
  EXPECT_NE(text.find("chord_kernel("), std::string::npos);
  EXPECT_EQ(weights::pack_kernel_name(CodeSource::codes_u8, ScaleSource::row_major),
            "pack_codes_u8_row_major.cu");
}

}  // namespace
}  // namespace chord
