// Kernels of the GPU tests: pinned ones for one question each, and planned ones. Every test file
// registers what it needs, so that all of it can be compiled beforehand, in parallel, without a
// GPU.
#pragma once

#include <functional>
#include <vector>

#include "chord/engine.h"

namespace chord::gpu_test {

// A kernel by its fields; what is not pinned follows from block_m and the shape.
struct KernelSpec {
  Family family = Family::indexed;
  std::int64_t n = 128;
  std::int64_t k = 128;
  int block_m = 8;
  Overrides pins = {};
  Epilogue epilogue = Epilogue::none;
};

// Pins the release of every spec from now on.
void set_release(abi::Release release);

Result<Decision> decision_of(const KernelSpec& spec, Architecture arch);

// Whether the kernel can have these fields.
bool is_possible(const KernelSpec& spec);

using Decisions = Result<std::vector<Decision>>;
using DecisionSource = std::function<Decisions(const Engine& engine, Architecture arch)>;

// For static initialisers; the value means nothing.
bool register_kernels(DecisionSource source);
bool register_kernels(std::function<std::vector<KernelSpec>()> specs);

// Every registered decision, each kernel once.
Decisions registered_kernels(const Engine& engine, Architecture arch);

}  // namespace chord::gpu_test
