// The map of the packed layout is a bijection, and the packer's view of it is the same map.
#include "chord/abi/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/pack/chunk.cuh"

namespace chord {
namespace {

struct Shape {
  std::int64_t experts, n, k;
};

const Shape kShapes[] = {{1, 64, 64}, {1, 128, 64}, {1, 64, 192}, {3, 128, 256}, {2, 320, 448}};

TEST(Layout, EveryCodeHasItsOwnNibbleAndEveryNibbleACode) {
  for (const Shape& s : kShapes) {
    std::vector<std::uint32_t> taken(abi::packed_weight_bytes(s.experts, s.n, s.k) / 4, 0);
    for (std::int64_t e = 0; e < s.experts; ++e)
      for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t k = 0; k < s.k; ++k) {
          const abi::WeightPlace place = abi::weight_place(e, n, k, s.n, s.k);
          ASSERT_EQ(place.shift % 4, 0);
          ASSERT_TRUE(place.shift >= 0 && place.shift < 32);
          ASSERT_TRUE(place.word >= 0 && place.word < static_cast<std::int64_t>(taken.size()));
          ASSERT_EQ(taken[place.word] >> place.shift & 15, 0u) << e << ' ' << n << ' ' << k;
          taken[place.word] |= 15u << place.shift;
        }
    for (const std::uint32_t word : taken) ASSERT_EQ(word, 0xffffffffu);
  }
}

TEST(Layout, EveryScaleHasItsOwnPlaceAndEveryPlaceAScale) {
  for (const Shape& s : kShapes) {
    std::vector<int> taken(abi::packed_scale_bytes(s.experts, s.n, s.k) / 2, 0);
    for (std::int64_t e = 0; e < s.experts; ++e)
      for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t group = 0; group < s.k / abi::kGroupSize; ++group) {
          const std::int64_t place = abi::scale_place(e, n, group, s.n, s.k);
          ASSERT_TRUE(place >= 0 && place < static_cast<std::int64_t>(taken.size()));
          ++taken[place];
        }
    for (const int count : taken) ASSERT_EQ(count, 1);
  }
}

// One atom by the words of the layout's definition, not by its formulas.
TEST(Layout, AnAtomIsTheMmaFragmentOfItsRows) {
  for (int strip = 0; strip < 4; ++strip)
    for (int lane = 0; lane < 32; ++lane)
      for (int step = 0; step < 4; ++step) {
        const int g = lane / 4, t = lane % 4, row = strip * 16 + g, col = step * 16 + 2 * t;
        const std::array<std::array<int, 2>, 8> codes{{{row, col},
                                                       {row + 8, col},
                                                       {row, col + 8},
                                                       {row + 8, col + 8},
                                                       {row, col + 1},
                                                       {row + 8, col + 1},
                                                       {row, col + 9},
                                                       {row + 8, col + 9}}};
        for (int nibble = 0; nibble < 8; ++nibble) {
          const auto place = abi::weight_place(0, codes[nibble][0], codes[nibble][1], 64, 64);
          EXPECT_EQ(place.word, strip * 128 + lane * 4 + step);
          EXPECT_EQ(place.shift, 4 * nibble);
        }
      }
}

TEST(Layout, IndicesOfTheLargestModelDoNotWrapAround) {
  // 384 experts of gate/up: 11.3e9 codes, 5.6e9 bytes.
  const std::int64_t e = 383, n = 4095, k = 7167, rows = 4096, depth = 7168;
  EXPECT_EQ(abi::packed_weight_bytes(384, rows, depth), 5637144576);
  EXPECT_EQ(abi::weight_place(e, n, k, rows, depth).word, 5637144576 / 4 - 1);
  EXPECT_EQ(abi::scale_place(e, n, depth / 32 - 1, rows, depth),
            abi::packed_scale_bytes(384, rows, depth) / 2 - 1);
  const std::int64_t last = device::chunk_count(384, rows, depth) - 1;
  const device::ChunkPlace at = device::chunk_place(last, rows, depth);
  EXPECT_EQ(at.expert, 383);
  EXPECT_EQ(at.row, 4087);
  EXPECT_EQ(at.col, 7104 + 6);
}

TEST(Layout, ChunkAndScaleOfAThreadAreWhereTheMapSays) {
  for (const Shape& s : kShapes)
    for (std::int64_t c = 0; c < device::chunk_count(s.experts, s.n, s.k); ++c) {
      const device::ChunkPlace at = device::chunk_place(c, s.n, s.k);
      const auto first = abi::weight_place(at.expert, at.row, at.col, s.n, s.k);
      ASSERT_EQ(first.word, 4 * c);
      ASSERT_EQ(first.shift, 0);
      const std::int64_t group = at.col / 64 * 2 + at.t % 2;
      ASSERT_EQ(abi::scale_place(at.expert, at.row + 8 * (at.t / 2), group, s.n, s.k), c);
    }
}

}  // namespace
}  // namespace chord
