// Packing and unpacking on the CPU, from every form of checkpoint.
#include <gtest/gtest.h>

#include "tests/weights/checkpoint.h"

namespace chord {
namespace {

using test::Checkpoint;
using test::Packed;

Packed pack_or_fail(const Checkpoint& from, CodeSource codes, ScaleSource scales) {
  Packed packed(from.shape);
  const Status status = pack_weights(from.source(codes, scales), from.shape, packed.weights.data(),
                                     packed.scales.data());
  EXPECT_TRUE(status.ok()) << status.error().message();
  return packed;
}

TEST(Pack, EverySourceGivesTheBytesOfTheMap) {
  for (const auto& [experts, n, k] :
       {std::array<int, 3>{1, 64, 64}, {3, 128, 192}, {2, 192, 256}}) {
    const Checkpoint from = test::random_checkpoint(experts, n, k, 7 + n);
    const Packed expected = test::expected_packed(from);
    for (const CodeSource codes : test::kCodeSources)
      for (const ScaleSource scales : test::kScaleSources)
        EXPECT_TRUE(pack_or_fail(from, codes, scales) == expected)
            << static_cast<int>(codes) << ' ' << static_cast<int>(scales) << " N " << n;
  }
}

TEST(Pack, UnpackingGivesBackEveryCodeAndScale) {
  const Checkpoint from = test::random_checkpoint(3, 128, 320, 11);
  for (const CodeSource codes : test::kCodeSources)
    for (const ScaleSource scales : test::kScaleSources) {
      const Packed packed = pack_or_fail(from, codes, scales);
      std::vector<std::uint8_t> back(from.codes.size(), 0xee);
      std::vector<std::uint16_t> scales_back(from.scales.size(), 0xeeee);
      ASSERT_TRUE(unpack_weights(packed.weights.data(), packed.scales.data(), from.shape,
                                 back.data(), scales_back.data())
                      .ok());
      EXPECT_EQ(back, from.codes);
      EXPECT_EQ(scales_back, from.scales);
    }
}

TEST(Pack, AKnownCodeInEachNibblePositionOfAWordArrives) {
  for (int position = 0; position < 8; ++position)
    for (int code = 0; code < 16; ++code) {
      Checkpoint from = test::random_checkpoint(1, 64, 64, 100 + 16 * position + code);
      const int row = (position * 11 + code) % 64, col = 8 * ((code * 5) % 8) + position;
      from.codes[row * 64 + col] = static_cast<std::uint8_t>(code);
      from.spell();
      // The position inside the checkpoint's word is the subject here.
      ASSERT_EQ(from.words[(row * 64 + col) / 8] >> (4 * position) & 15u, unsigned(code));
      const Packed packed = pack_or_fail(from, CodeSource::words, ScaleSource::row_major);
      const auto place = abi::weight_place(0, row, col, 64, 64);
      EXPECT_EQ(packed.weights[place.word] >> place.shift & 15u, unsigned(code));
      EXPECT_TRUE(packed == test::expected_packed(from));
    }
}

TEST(Pack, OneChangedCodeMovesOneNibble) {
  Checkpoint from = test::random_checkpoint(2, 64, 128, 3);
  const Packed before = pack_or_fail(from, CodeSource::words, ScaleSource::row_major);
  from.codes[(1 * 64 + 17) * 128 + 93] ^= 5;
  from.spell();
  const Packed after = pack_or_fail(from, CodeSource::words, ScaleSource::row_major);
  int changed = 0;
  for (std::size_t i = 0; i < before.weights.size(); ++i)
    if (const std::uint32_t flip = before.weights[i] ^ after.weights[i]; flip != 0) {
      const auto place = abi::weight_place(1, 17, 93, 64, 128);
      EXPECT_EQ(static_cast<std::int64_t>(i), place.word);
      EXPECT_EQ(flip, 5u << place.shift);
      ++changed;
    }
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(before.scales, after.scales);
}

TEST(Pack, RepackingIntoTheSameMemoryLeavesNothingOfTheOldWeights) {
  const Checkpoint old = test::random_checkpoint(2, 128, 128, 21);
  const Checkpoint next = test::random_checkpoint(2, 128, 128, 22);
  Packed packed = pack_or_fail(old, CodeSource::codes_u8, ScaleSource::row_major);
  ASSERT_TRUE(pack_weights(next.source(CodeSource::words, ScaleSource::k_major), next.shape,
                           packed.weights.data(), packed.scales.data())
                  .ok());
  EXPECT_TRUE(packed == test::expected_packed(next));
}

TEST(Pack, StaysInsideItsOutputs) {
  const Checkpoint from = test::random_checkpoint(1, 64, 64, 5);
  std::vector<std::uint32_t> weights(from.shape.weight_bytes() / 4 + 4, 0xabcdabcd);
  std::vector<std::uint16_t> scales(from.shape.scale_bytes() / 2 + 4, 0xabcd);
  ASSERT_TRUE(pack_weights(from.source(CodeSource::words, ScaleSource::row_major), from.shape,
                           weights.data(), scales.data())
                  .ok());
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(weights[weights.size() - i], 0xabcdabcdu);
    EXPECT_EQ(scales[scales.size() - i], 0xabcd);
  }
}

}  // namespace
}  // namespace chord
