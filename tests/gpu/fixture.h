// The fixture of every GPU test: skips, by name and with the reason, where there is no GPU; watches
// for hangs; notices when a test has broken the context.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/gpu/kernels.h"
#include "tools/bench/gemm_run.h"
#include "tools/bench/timing.h"

// Ends the test when a Status or Result is an error; the second form also binds the value.
#define REQUIRE_OK(expression)                                            \
  do {                                                                    \
    const auto require_result = (expression);                             \
    ASSERT_TRUE(require_result.ok()) << require_result.error().message(); \
  } while (false)
#define REQUIRE_VALUE(declaration, expression) \
  REQUIRE_VALUE_(CHORD_TRY_NAME_(__LINE__), declaration, expression)
#define REQUIRE_VALUE_(result, declaration, expression) \
  auto result = (expression);                           \
  ASSERT_TRUE(result.ok()) << result.error().message(); \
  declaration = std::move(result).value()

namespace chord::gpu_test {

using bench::Comparison;
using bench::GemmRun;
using bench::Rig;
using bench::Routing;
using bench::RunOptions;
using bench::WeightOptions;
using bench::Weights;

// The one GPU of the process; opened by the first test, closed by close_rig.
const Result<Rig*>& shared_rig();
void close_rig();

// After this long a test counts as hung, and the process ends.
void set_longest_test(std::chrono::seconds limit);

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Rig& rig() { return **shared_rig(); }
  cuda::CUstream stream() { return rig().stream.handle(); }

  Result<PreparedKernel> prepare(const KernelSpec& spec);
  Result<Weights> make_weights(std::int64_t experts, const KernelSpec& spec,
                               const WeightOptions& options = {});
  Result<GemmRun> make_run(const KernelSpec& spec, const Weights& weights, Routing routing,
                           const RunOptions& options = {});

  // Runs once and expects what the contract promises.
  void expect_right(const KernelSpec& spec, const Weights& weights, Routing routing,
                    const std::string& what, const RunOptions& options = {});
  void expect_right(GemmRun& run, const std::string& what);
};

// A routing of the spec's family with these rows per expert: shuffled tokens (indexed, top-1), or
// padded rows (contiguous), or slabs of the largest count (masked).
Routing routing_of(const KernelSpec& spec, const std::vector<std::int64_t>& counts);

const Family kFamilies[] = {Family::indexed, Family::grouped_contiguous, Family::grouped_masked};

}  // namespace chord::gpu_test
