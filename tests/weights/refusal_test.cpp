// What packing refuses, and what it says.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/weights/pack_source.h"
#include "tests/weights/checkpoint.h"

namespace chord {
namespace {

using test::Checkpoint;
using test::Packed;

Status pack(const Checkpoint& from, CodeSource codes, ScaleSource scales) {
  Packed packed(from.shape);
  return pack_weights(from.source(codes, scales), from.shape, packed.weights.data(),
                      packed.scales.data());
}

double value_of(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The rule in words, on the value: not on the pattern's fields.
bool may_pack(double value) {
  if (value == 0) return true;
  return std::isfinite(value) && std::fabs(value) >= std::ldexp(1.0, -112) &&
         std::fabs(value) < std::ldexp(1.0, 9);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Scale, EveryPatternIsPackableExactlyWhenTheRuleSaysSo) {
  int packable = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(abi::is_packable_scale(pattern), may_pack(value_of(pattern))) << bits;
    packable += may_pack(value_of(pattern));
  }
  EXPECT_EQ(packable, 121 * 128 * 2 + 2);
}

TEST(Scale, EveryPackablePatternIsStoredExactlyInBothHalvesOfAStrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    if (!may_pack(value_of(pattern))) continue;
    for (const int row : {3, 11}) {
      const int shift = row < 8 ? 119 : 115;
      ASSERT_EQ(abi::scale_shift(row), shift);
      const std::uint16_t stored = abi::transform_scale(pattern, shift);
      ASSERT_EQ(value_of(stored), std::ldexp(value_of(pattern), shift)) << bits;
      ASSERT_EQ(std::signbit(value_of(stored)), std::signbit(value_of(pattern))) << bits;
      ASSERT_EQ(abi::transform_scale(stored, -shift), pattern);
    }
  }
}

TEST(Scale, PackingRefusesExactlyThePatternsOfTheRule) {
  Checkpoint from = test::random_checkpoint(1, 64, 64, 1);
  for (int bits = 0; bits < 65536; ++bits) {
    from.scales[bits % from.scales.size()] = static_cast<std::uint16_t>(bits);
    const Status status = pack(from, CodeSource::words, ScaleSource::row_major);
    ASSERT_EQ(status.ok(), may_pack(value_of(static_cast<std::uint16_t>(bits)))) << bits;
    from.scales[bits % from.scales.size()] = 0x3f80;
  }
}

TEST(Scale, TheRefusalNamesExpertRowGroupAndValue) {
  for (const ScaleSource scales : test::kScaleSources) {
    Checkpoint from = test::random_checkpoint(3, 128, 192, 2);
    from.scales[(2 * 128 + 77) * 6 + 5] = 0x7fc0;
    from.spell();
    const Status status = pack(from, CodeSource::words, scales);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    const std::string text = status.error().message();
    EXPECT_TRUE(contains(text, "expert 2, row 77, group 5")) << text;
    EXPECT_TRUE(contains(text, "nan") && contains(text, "0x7fc0")) << text;
  }
}

TEST(Scale, OfSeveralRefusedTheFirstInCheckpointOrderIsNamed) {
  Checkpoint from = test::random_checkpoint(2, 128, 256, 2);
  from.scales[(1 * 128 + 2) * 8 + 0] = 0x4400;  // 2^9; in the layout it lies before the next one
  from.scales[(0 * 128 + 100) * 8 + 7] = 0xc400;
  from.scales[(0 * 128 + 101) * 8 + 0] = 0x7f80;
  from.spell();
  const Status status = pack(from, CodeSource::words, ScaleSource::row_major);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(contains(status.error().message(), "expert 0, row 100, group 7"))
      << status.error().message();
  EXPECT_TRUE(contains(status.error().message(), "-512")) << status.error().message();
}

TEST(Code, AboveFifteenIsRefusedWithItsPlaceAndValue) {
  Checkpoint from = test::random_checkpoint(2, 128, 192, 4);
  const std::size_t index = (1 * 128 + 73) * 192 + 131;
  for (const int value : {16, 255, 300, 70000, -1}) {
    from.codes_i32[index] = value;
    const Status status = pack(from, CodeSource::codes_i32, ScaleSource::row_major);
    ASSERT_FALSE(status.ok()) << value;
    const std::string text = status.error().message();
    EXPECT_TRUE(contains(text, "expert 1, row 73, column 131 (group 4)")) << text;
    if (value >= 16 && value < 65535) {
      EXPECT_TRUE(contains(text, "it is " + std::to_string(value))) << text;
    }
  }
}

TEST(Code, BytesAboveFifteenAreRefusedInEveryColumn) {
  for (int col = 0; col < 64; ++col) {
    Checkpoint from = test::random_checkpoint(1, 64, 64, 4);
    from.codes[(col * 7) % 64 * 64 + col] = 16;
    const Status status = pack(from, CodeSource::codes_u8, ScaleSource::row_major);
    ASSERT_FALSE(status.ok()) << col;
    EXPECT_TRUE(contains(status.error().message(), "row " + std::to_string((col * 7) % 64) +
                                                       ", column " + std::to_string(col)))
        << status.error().message();
  }
}

TEST(Code, OfSeveralRefusedTheFirstInCheckpointOrderIsNamed) {
  Checkpoint from = test::random_checkpoint(1, 128, 128, 4);
  // One chunk holds rows 5 and 13; row 6 lies in a later chunk.
  from.codes[13 * 128 + 0] = 40;
  from.codes[6 * 128 + 127] = 41;
  from.codes[6 * 128 + 126] = 42;
  from.codes[5 * 128 + 73] = 43;
  from.codes[5 * 128 + 72] = 44;
  const Status status = pack(from, CodeSource::codes_u8, ScaleSource::row_major);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(contains(status.error().message(), "row 5, column 72")) << status.error().message();
  EXPECT_TRUE(contains(status.error().message(), "it is 44")) << status.error().message();
}

TEST(PackStatus, CleanIsSuccessAndTheOthersNameTheirOffender) {
  const PackedShape shape{.experts = 48, .n = 4096, .k = 7168};
  EXPECT_TRUE(check_pack_status(abi::kPackStatusClean, shape).ok());
  const std::int64_t scale = (47ll * 4096 + 4095) * 224 + 223;
  const Status scale_status = check_pack_status(abi::pack_status(scale, 0x7f80), shape);
  ASSERT_FALSE(scale_status.ok());
  EXPECT_TRUE(contains(scale_status.error().message(), "expert 47, row 4095, group 223"));
  EXPECT_TRUE(contains(scale_status.error().message(), "inf"));
  const std::int64_t code = (47ll * 4096 + 4095) * 7168 + 7167;
  const Status code_status = check_pack_status(abi::pack_code_status(code, 16), shape);
  ASSERT_FALSE(code_status.ok());
  EXPECT_TRUE(contains(code_status.error().message(), "expert 47, row 4095, column 7167"));
}

TEST(PackedShape, EverythingButMultiplesOf64IsRefusedWithTheNumbers) {
  for (const std::int64_t n : {64, 128, 4096, 7168})
    for (const std::int64_t k : {64, 256, 2048, 7168})
      for (const std::int64_t off_n : {0, 8, 16, 32, 64, -8, -16, -32, 1, -1})
        for (const std::int64_t off_k : {0, 8, 16, 32, 64, -8, -16, -32, 1, -1}) {
          const PackedShape shape{.experts = 2, .n = n + off_n, .k = k + off_k};
          const bool legal = shape.n % 64 == 0 && shape.k % 64 == 0 && shape.n > 0 && shape.k > 0;
          const Status status = check_shape(shape);
          ASSERT_EQ(status.ok(), legal) << shape.n << ' ' << shape.k;
          if (legal) continue;
          const std::string text = status.error().message();
          EXPECT_TRUE(contains(text, "N " + std::to_string(shape.n))) << text;
          EXPECT_TRUE(contains(text, "K " + std::to_string(shape.k))) << text;
        }
}

TEST(PackedShape, ZeroNegativeAndHugeAreRefused) {
  const std::int64_t big = std::int64_t{1} << 40;
  for (const PackedShape& shape :
       {PackedShape{.experts = 0, .n = 64, .k = 64}, PackedShape{.experts = -1, .n = 64, .k = 64},
        PackedShape{.experts = 1, .n = 0, .k = 64}, PackedShape{.experts = 1, .n = 64, .k = 0},
        PackedShape{.experts = 1, .n = -64, .k = 64}, PackedShape{.experts = 1, .n = big, .k = 64},
        PackedShape{.experts = big, .n = 64, .k = 64},
        PackedShape{.experts = 0x7fffffff, .n = 0x7fffffc0, .k = 0x7fffffc0}})
    EXPECT_FALSE(check_shape(shape).ok()) << shape.experts << ' ' << shape.n << ' ' << shape.k;
}

TEST(PackedShape, AnotherLayoutVersionIsRefusedWithBothVersions) {
  const PackedShape shape{.experts = 1, .n = 64, .k = 64, .layout_version = 99};
  const Status status = check_shape(shape);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(contains(status.error().message(), "99"));
  EXPECT_TRUE(contains(status.error().message(), std::to_string(abi::kLayoutVersion)));
}

TEST(Pack, RefusesWhatCheckShapeRefusesAndTouchesNothing) {
  const PackedShape shape{.experts = 1, .n = 72, .k = 64};
  std::uint32_t weights = 1;
  std::uint16_t scales = 2;
  std::uint8_t codes = 0;
  const WeightSource source{&codes, CodeSource::codes_u8, &scales, ScaleSource::row_major};
  EXPECT_FALSE(pack_weights(source, shape, &weights, &scales).ok());
  EXPECT_EQ(weights, 1u);
  EXPECT_EQ(scales, 2);
  std::uint16_t out = 3;
  EXPECT_FALSE(unpack_weights(&weights, &scales, shape, &codes, &out).ok());
  EXPECT_EQ(out, 3);
}

TEST(Pack, RefusesNullMisalignedAndUnknownSources) {
  const Checkpoint from = test::random_checkpoint(1, 64, 64, 9);
  const WeightSource good = from.source(CodeSource::words, ScaleSource::row_major);
  std::vector<std::uint32_t> weights(from.shape.weight_bytes() / 4 + 4);
  std::vector<std::uint16_t> scales(from.shape.scale_bytes() / 2 + 8);
  const auto attempt = [&](WeightSource source, std::uint32_t* w, std::uint16_t* s) {
    return pack_weights(source, from.shape, w, s).ok();
  };
  ASSERT_TRUE(attempt(good, weights.data(), scales.data()));
  WeightSource bad = good;
  bad.codes = nullptr;
  EXPECT_FALSE(attempt(bad, weights.data(), scales.data()));
  bad = good;
  bad.scales = nullptr;
  EXPECT_FALSE(attempt(bad, weights.data(), scales.data()));
  bad = good;
  bad.code_source = static_cast<CodeSource>(9);
  EXPECT_FALSE(attempt(bad, weights.data(), scales.data()));
  bad = good;
  bad.scale_source = static_cast<ScaleSource>(-1);
  EXPECT_FALSE(attempt(bad, weights.data(), scales.data()));
  EXPECT_FALSE(attempt(good, nullptr, scales.data()));
  EXPECT_FALSE(attempt(good, weights.data(), nullptr));
  EXPECT_FALSE(attempt(good, weights.data() + 1, scales.data()));
  EXPECT_FALSE(attempt(good, weights.data(), scales.data() + 1));
}

// Addresses are looked at, never followed.
template <class Value>
Value* at(std::uintptr_t address) {
  return reinterpret_cast<Value*>(address);
}

struct PackPointers {
  WeightSource source{at<void>(0x1000), CodeSource::words, at<std::uint16_t>(0x2000),
                      ScaleSource::row_major};
  void* weights = at<void>(0x3000);
  void* scales = at<void>(0x4000);
  std::uint64_t* status = at<std::uint64_t>(0x5000);

  std::string refusal() const {
    const Status checked = weights::check_pack_pointers(source, weights, scales, status);
    return checked.ok() ? "" : checked.error().found;
  }
};

TEST(PackPointers, ThatAreNullAreNamed) {
  const auto without = [](auto change) {
    PackPointers pointers;
    change(pointers);
    return pointers.refusal();
  };
  EXPECT_EQ(without([](auto&) {}), "");
  EXPECT_EQ(without([](auto& p) { p.source.codes = nullptr; }), "source.codes is a null pointer");
  EXPECT_EQ(without([](auto& p) { p.source.scales = nullptr; }), "source.scales is a null pointer");
  EXPECT_EQ(without([](auto& p) { p.weights = nullptr; }), "weights is a null pointer");
  EXPECT_EQ(without([](auto& p) { p.scales = nullptr; }), "scales is a null pointer");
  EXPECT_EQ(without([](auto& p) { p.status = nullptr; }), "status is a null pointer");
}

TEST(PackPointers, CodesAreAlignedAsTheyAreRead) {
  PackPointers pointers;
  for (const CodeSource codes :
       {CodeSource::codes_i32, CodeSource::words, CodeSource::words_k_major}) {
    pointers.source.code_source = codes;
    for (const std::uintptr_t off : {1, 2, 3}) {
      pointers.source.codes = at<void>(0x1000 + off);
      EXPECT_TRUE(contains(pointers.refusal(), "source.codes is at 0x100")) << pointers.refusal();
      EXPECT_TRUE(contains(pointers.refusal(), "not aligned to 4 bytes")) << pointers.refusal();
    }
    pointers.source.codes = at<void>(0x1004);
    EXPECT_EQ(pointers.refusal(), "");
  }
  pointers.source = {at<void>(0x1003), CodeSource::codes_u8, pointers.source.scales,
                     ScaleSource::row_major};
  EXPECT_EQ(pointers.refusal(), "");
}

TEST(PackPointers, TheOthersHaveOneAlignmentEach) {
  PackPointers pointers;
  pointers.source.scales = at<std::uint16_t>(0x2001);
  EXPECT_EQ(pointers.refusal(), "source.scales is at 0x2001, not aligned to 2 bytes");
  pointers = {};
  pointers.weights = at<void>(0x3008);
  EXPECT_EQ(pointers.refusal(), "weights is at 0x3008, not aligned to 16 bytes");
  pointers = {};
  pointers.scales = at<void>(0x4008);
  EXPECT_EQ(pointers.refusal(), "scales is at 0x4008, not aligned to 16 bytes");
  pointers = {};
  pointers.status = at<std::uint64_t>(0x5004);
  EXPECT_EQ(pointers.refusal(), "status is at 0x5004, not aligned to 8 bytes");
}

}  // namespace
}  // namespace chord
