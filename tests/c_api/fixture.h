// A handle with a cache folder of its own, and the same engine through the C++ face.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "chord/chord.h"
#include "chord/engine.h"
#include "tests/support/temporary_folder.h"

namespace chord::c_api_test {

// Ends the test when a call fails, with what it said.
#define REQUIRE_SUCCESS(call) ASSERT_EQ(call, CHORD_SUCCESS) << chord_last_error()->message
#define EXPECT_SUCCESS(call) EXPECT_EQ(call, CHORD_SUCCESS) << chord_last_error()->message

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A value that the enum may not have, as a C program could write it.
template <class Enum>
void set_raw(Enum& to, int value) {
  static_assert(sizeof to == sizeof value);
  std::memcpy(&to, &value, sizeof value);
}

// Owns an opaque pointer.
template <class Pointer, void (*Destroy)(Pointer)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  ~Owned() { Destroy(pointer_); }

  Pointer* out() { return &pointer_; }
  operator Pointer() const { return pointer_; }

 private:
  Pointer pointer_ = nullptr;
};

using OwnedHandle = Owned<chord_handle_t, chord_destroy>;
using OwnedPlan = Owned<chord_plan_t, chord_plan_destroy>;
using OwnedKernel = Owned<chord_kernel_t, chord_kernel_destroy>;
using OwnedReport = Owned<chord_report_t, chord_report_destroy>;

// Kimi K2.5's gate/up on one of eight GPUs.
inline chord_gemm_descriptor_t decode() {
  chord_gemm_descriptor_t descriptor = chord_gemm_descriptor_init();
  descriptor.profile = "h200_decode_ep8";
  descriptor.n = 4096;
  descriptor.k = 7168;
  descriptor.experts = 48;
  descriptor.rows = 160;
  return descriptor;
}

// The smallest model that the sharding takes.
inline chord_model_t small_model() {
  chord_model_t model = chord_model_init();
  std::strcpy(model.name, "small");
  model.hidden_size = 128;
  model.moe_intermediate_size = 64;
  model.n_routed_experts = 4;
  model.num_experts_per_tok = 1;
  model.num_hidden_layers = 1;
  return model;
}

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string cache = folder_ / "cache";
    chord_options_t options = chord_options_init();
    options.cache_dir = cache.c_str();
    REQUIRE_SUCCESS(chord_create(&options, handle_.out()));
  }

  Engine engine() {
    Options options;
    options.cache_dir = folder_ / "cache";
    Result<Engine> made = Engine::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.error().message();
    return std::move(*made);
  }

  chord::testing::TemporaryFolder folder_;
  OwnedHandle handle_;
};

}  // namespace chord::c_api_test
