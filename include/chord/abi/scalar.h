// Scalar names shared by the host compiler and NVRTC. No include, no attribute, no host type.
// Every file in abi/ is compiled twice; what both sides must agree on is written here once.
#pragma once

namespace chord::abi {

using u8 = unsigned char;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

static_assert(sizeof(u16) == 2 && sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(void*) == 8);

constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
constexpr i64 round_up(i64 a, i64 b) { return ceil_div(a, b) * b; }
constexpr i64 min_of(i64 a, i64 b) { return a < b ? a : b; }
constexpr i64 max_of(i64 a, i64 b) { return a > b ? a : b; }

}  // namespace chord::abi
