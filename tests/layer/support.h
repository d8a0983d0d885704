// What the tests of the layer kernels' arguments share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "src/layer/layer_params.h"

namespace chord::layer {

// Addresses are looked at, never followed.
template <class Value>
Value* at(std::uintptr_t address) {
  return reinterpret_cast<Value*>(address);
}

struct Refusal {
  std::string asked, found, help;
};

template <class Params, class Arguments>
void expect_refused(const Arguments& arguments, const Refusal& refusal) {
  Params params{};
  const Result<unsigned> blocks = fill_params(arguments, params);
  ASSERT_FALSE(blocks.ok()) << refusal.found;
  EXPECT_EQ(blocks.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(blocks.error().asked, refusal.asked);
  EXPECT_EQ(blocks.error().found, refusal.found);
  EXPECT_EQ(blocks.error().help, refusal.help);
}

// -1: refused.
template <class Params, class Arguments>
std::int64_t blocks_of(const Arguments& arguments) {
  Params params{};
  const Result<unsigned> blocks = fill_params(arguments, params);
  EXPECT_TRUE(blocks.ok()) << blocks.error().message();
  return blocks.ok() ? std::int64_t{*blocks} : -1;
}

inline constexpr const char* kNoMemory = "pass device memory";
inline constexpr const char* kSubView = "allocate it aligned; sub-views may break alignment";

}  // namespace chord::layer
