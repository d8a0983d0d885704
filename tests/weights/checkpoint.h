// A made-up checkpoint in every form that packing accepts, and the packed bytes that the layout's
// element-wise map asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "chord/weights.h"

namespace chord::test {

inline constexpr CodeSource kCodeSources[] = {CodeSource::codes_i32, CodeSource::codes_u8,
                                              CodeSource::words, CodeSource::words_k_major};
inline constexpr RowOrder kRowOrders[] = {RowOrder::plain, RowOrder::gate_up};
inline constexpr ScaleSource kScaleSources[] = {ScaleSource::row_major, ScaleSource::k_major};

struct Checkpoint {
  PackedShape shape;
  std::vector<std::uint8_t> codes;    // [E, N, K]
  std::vector<std::uint16_t> scales;  // [E, N, K/32]

  std::vector<std::int32_t> codes_i32;
  std::vector<std::uint32_t> words, words_k_major;
  std::vector<std::uint16_t> scales_k_major;

  // After a change of codes or scales.
  void spell() {
    const std::int64_t e_count = shape.experts, n_count = shape.n, k_count = shape.k;
    codes_i32.assign(codes.begin(), codes.end());
    words.assign(codes.size() / 8, 0);
    words_k_major.assign(codes.size() / 8, 0);
    scales_k_major.assign(scales.size(), 0);
    for (std::int64_t e = 0; e < e_count; ++e)
      for (std::int64_t n = 0; n < n_count; ++n) {
        for (std::int64_t k = 0; k < k_count; ++k) {
          const std::uint32_t nibble = codes[(e * n_count + n) * k_count + k] & 15u;
          words[((e * n_count + n) * k_count + k) / 8] |= nibble << (4 * (k % 8));
          words_k_major[(e * (k_count / 8) + k / 8) * n_count + n] |= nibble << (4 * (k % 8));
        }
        for (std::int64_t g = 0; g < k_count / 32; ++g)
          scales_k_major[(e * (k_count / 32) + g) * n_count + n] =
              scales[(e * n_count + n) * (k_count / 32) + g];
      }
  }

  WeightSource source(CodeSource code_source, ScaleSource scale_source) const {
    const void* pointer = nullptr;
    switch (code_source) {
      case CodeSource::codes_i32:
        pointer = codes_i32.data();
        break;
      case CodeSource::codes_u8:
        pointer = codes.data();
        break;
      case CodeSource::words:
        pointer = words.data();
        break;
      case CodeSource::words_k_major:
        pointer = words_k_major.data();
        break;
    }
    return {pointer, code_source,
            scale_source == ScaleSource::row_major ? scales.data() : scales_k_major.data(),
            scale_source};
  }
};

inline Checkpoint random_checkpoint(std::int64_t experts, std::int64_t n, std::int64_t k,
                                    unsigned seed, RowOrder row_order = RowOrder::plain) {
  Checkpoint made;
  made.shape = {.experts = experts, .n = n, .k = k, .row_order = row_order};
  std::mt19937 draw(seed);
  made.codes.resize(experts * n * k);
  for (auto& code : made.codes) code = draw() % 16;
  made.scales.resize(experts * n * (k / 32));
  // Finite scales of either sign between 2^-20 and 2^7.
  for (auto& scale : made.scales)
    scale =
        static_cast<std::uint16_t>((draw() % 2) << 15 | (107 + draw() % 27) << 7 | draw() % 128);
  made.spell();
  return made;
}

struct Packed {
  std::vector<std::uint32_t> weights;
  std::vector<std::uint16_t> scales;

  explicit Packed(const PackedShape& shape)
      : weights(shape.weight_bytes() / 4, 0xdeadbeef), scales(shape.scale_bytes() / 2, 0xdead) {}
  bool operator==(const Packed&) const = default;
};

inline Packed expected_packed(const Checkpoint& from) {
  const PackedShape& s = from.shape;
  Packed packed(s);
  std::fill(packed.weights.begin(), packed.weights.end(), 0u);
  for (std::int64_t e = 0; e < s.experts; ++e)
    for (std::int64_t n = 0; n < s.n; ++n) {
      const std::int64_t row = abi::packed_row(s.row_order, n, s.n);
      for (std::int64_t k = 0; k < s.k; ++k) {
        const auto place = abi::weight_place(e, row, k, s.n, s.k);
        packed.weights[place.word] |= std::uint32_t{from.codes[(e * s.n + n) * s.k + k]}
                                      << place.shift;
      }
      for (std::int64_t g = 0; g < s.k / 32; ++g)
        packed.scales[abi::scale_place(e, row, g, s.n, s.k)] = abi::transform_scale(
            from.scales[(e * s.n + n) * (s.k / 32) + g], abi::scale_shift(row));
    }
  return packed;
}

}  // namespace chord::test
