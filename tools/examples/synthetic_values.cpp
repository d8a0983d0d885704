// Counter-based random numbers.
#include "tools/examples/synthetic_values.h"

#include <cmath>

#include "tools/examples/bf16.h"

namespace chord::examples {
namespace {

enum class Stream : std::uint64_t { words, scales, gate, bias, activations };

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x9FB21C651E98DF25ull;
  x = (x ^ x >> 29) * 0xD6E8FEB86659FD93ull;
  return x ^ x >> 32;
}

std::uint64_t key_of(const MatrixPlace& place, Stream stream) {
  std::uint64_t key = mix(place.seed + 0x9E3779B97F4A7C15ull);
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(place.layer), static_cast<std::uint64_t>(place.expert),
        static_cast<std::uint64_t>(place.projection), static_cast<std::uint64_t>(stream)})
    key = mix(key * 0x2545F4914F6CDD1Dull + part + 1);
  return key;
}

std::uint64_t draw(std::uint64_t key, std::int64_t at) {
  return mix(key + static_cast<std::uint64_t>(at) * 0x9E3779B97F4A7C15ull);
}

// Eight codes from 1 to 15.
std::uint32_t word_of(std::uint64_t bits) {
  std::uint32_t word = 0;
  for (int i = 0; i < kCodesInWord; ++i) {
    const std::uint32_t byte = bits >> (8 * i) & 255;
    word |= (1 + byte * 15 / 256) << (4 * i);
  }
  return word;
}

// [0, 1)
double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// The sum of four uniforms: mean 0, variance 1, close enough to normal.
double normal_of(std::uint64_t bits) {
  double sum = -2.0;
  for (int i = 0; i < 4; ++i) sum += ((bits >> (16 * i) & 0xffff) + 0.5) / 65536.0;
  return sum * std::sqrt(3.0);
}

}  // namespace

void fill_words(const MatrixPlace& place, std::int64_t k, const Part& part, std::uint32_t* words) {
  const std::uint64_t key = key_of(place, Stream::words);
  const std::int64_t first = part.first_column / kCodesInWord;
  const std::int64_t count = part.columns / kCodesInWord;
  for (std::int64_t row = part.first_row; row < part.first_row + part.rows; ++row)
    for (std::int64_t i = 0; i < count; ++i)
      *words++ = word_of(draw(key, row * (k / kCodesInWord) + first + i));
}

void fill_scales(const MatrixPlace& place, std::int64_t k, const Part& part,
                 std::uint16_t* scales) {
  const std::uint64_t key = key_of(place, Stream::scales);
  // Codes less 8 have a standard deviation of 4.3: a product of K normal values comes out near 2.
  const double middle = 0.45 / std::sqrt(static_cast<double>(k));
  const std::int64_t first = part.first_column / kGroup;
  const std::int64_t count = part.columns / kGroup;
  for (std::int64_t row = part.first_row; row < part.first_row + part.rows; ++row)
    for (std::int64_t i = 0; i < count; ++i) {
      const double unit = unit_of(draw(key, row * (k / kGroup) + first + i));
      *scales++ = bf16_of_float(static_cast<float>(middle * (0.5 + unit)));
    }
}

Router synthetic_router(std::uint64_t seed, std::int64_t layer, std::int64_t experts,
                        std::int64_t hidden) {
  const MatrixPlace place{seed, layer, 0, Projection::gate};
  const double deviation = 1.0 / std::sqrt(static_cast<double>(hidden));
  Router router;
  router.gate.resize(static_cast<std::size_t>(experts * hidden));
  const std::uint64_t gate = key_of(place, Stream::gate);
  for (std::size_t i = 0; i < router.gate.size(); ++i)
    router.gate[i] = bf16_of_float(
        static_cast<float>(deviation * normal_of(draw(gate, static_cast<std::int64_t>(i)))));
  const std::uint64_t bias = key_of(place, Stream::bias);
  // Values that BF16 holds, so that both spellings of the bias are the same router.
  for (std::int64_t e = 0; e < experts; ++e)
    router.bias.push_back(
        float_of_bf16(bf16_of_float(static_cast<float>(0.2 * unit_of(draw(bias, e)) - 0.1))));
  return router;
}

std::vector<std::uint16_t> synthetic_activations(std::uint64_t seed, std::int64_t count) {
  const std::uint64_t key = key_of({seed, 0, 0, Projection::gate}, Stream::activations);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        bf16_of_float(static_cast<float>(normal_of(draw(key, static_cast<std::int64_t>(i)))));
  return values;
}

}  // namespace chord::examples
