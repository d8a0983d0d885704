// Where an activation lies in its stage: rows of 128 bytes (one k64 slice), the 16-byte chunk c of
// row r at position c ^ (r & 7). It is the SWIZZLE_128B of tensor copies, and makes eight rows of
// one chunk column fall into eight different bank groups for ldmatrix.
#pragma once

#include "chord/abi/scalar.h"

namespace chord::device {

inline constexpr abi::i32 kActivationRowBytes = 128;

constexpr abi::u32 swizzled_offset(abi::u32 row, abi::u32 chunk) {
  return row * kActivationRowBytes + ((chunk ^ (row & 7)) << 4);
}

}  // namespace chord::device
