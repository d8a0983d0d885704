// The shared rig and what every test does with it.
#include "tests/gpu/fixture.h"

#include <algorithm>
#include <memory>
#include <random>

#include "tools/bench/watchdog.h"

namespace chord::gpu_test {
namespace {

constexpr int kHungExitCode = 3;

std::chrono::seconds longest_test{90};
std::unique_ptr<Rig> rig_of_process;
std::string broken_by;  // the test after which the context answers with errors

bench::Watchdog& watchdog() {
  static bench::Watchdog dog(kHungExitCode);
  return dog;
}

Result<Rig*> open_rig() {
  CHORD_TRY(rig_of_process, Rig::create({}));
  return rig_of_process.get();
}

// Empty where there is a GPU that the library has kernels for: then a rig that can not be opened is
// a failure and no reason to skip.
std::string why_no_gpu() {
  const auto context = cuda::retain_primary_context(0);
  if (!context.ok()) return context.error().message();
  const auto device = cuda::current_device();
  return device.ok() ? "" : device.error().message();
}

std::string current_test() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

}  // namespace

const Result<Rig*>& shared_rig() {
  static const Result<Rig*> rig = open_rig();
  return rig;
}

void close_rig() { rig_of_process.reset(); }

void set_longest_test(std::chrono::seconds limit) { longest_test = limit; }

void GpuTest::SetUp() {
  watchdog().watch(current_test(), longest_test);
  const Result<Rig*>& opened = shared_rig();
  const std::string no_gpu = opened.ok() ? "" : why_no_gpu();
  if (!no_gpu.empty()) GTEST_SKIP() << "needs a GPU: " << no_gpu;
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  ASSERT_EQ(broken_by, "") << "the context was broken by that test";
}

void GpuTest::TearDown() {
  watchdog().rest();
  if (!shared_rig().ok() || !broken_by.empty()) return;
  const Status state = cuda::check(rig().driver->ctx_synchronize(), "wait for the GPU");
  if (state.ok()) return;
  broken_by = current_test();
  ADD_FAILURE() << state.error().message();
}

Result<PreparedKernel> GpuTest::prepare(const KernelSpec& spec) {
  CHORD_TRY(const Decision decision, decision_of(spec, rig().device.arch));
  return rig().engine.prepare(decision);
}

Result<Weights> GpuTest::make_weights(std::int64_t experts, const KernelSpec& spec,
                                      const WeightOptions& options) {
  PackedShape shape{.experts = experts, .n = spec.n, .k = spec.k};
  if (spec.epilogue == Epilogue::swiglu) shape.row_order = RowOrder::gate_up;
  return Weights::make(rig(), shape, options);
}

Result<GemmRun> GpuTest::make_run(const KernelSpec& spec, const Weights& weights, Routing routing,
                                  const RunOptions& options) {
  CHORD_TRY(const PreparedKernel kernel, prepare(spec));
  return GemmRun::make(rig(), kernel, weights, std::move(routing), options);
}

void GpuTest::expect_right(const KernelSpec& spec, const Weights& weights, Routing routing,
                           const std::string& what, const RunOptions& options) {
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, std::move(routing), options));
  expect_right(run, what);
}

void GpuTest::expect_right(GemmRun& run, const std::string& what) {
  REQUIRE_VALUE(const Comparison comparison, run.check());
  EXPECT_EQ(comparison.violation(), "") << what;
}

Routing routing_of(const KernelSpec& spec, const std::vector<std::int64_t>& counts) {
  if (spec.family == Family::grouped_contiguous) return bench::padded_rows(counts);
  if (spec.family == Family::grouped_masked)
    return bench::masked(
        counts, std::max<std::int64_t>(1, *std::max_element(counts.begin(), counts.end())));
  std::vector<std::int32_t> experts;
  for (std::size_t e = 0; e < counts.size(); ++e)
    experts.insert(experts.end(), static_cast<std::size_t>(counts[e]),
                   static_cast<std::int32_t>(e));
  std::shuffle(experts.begin(), experts.end(), std::mt19937(experts.size()));
  return bench::indexed(experts, static_cast<std::int64_t>(counts.size()), 1, spec.block_m);
}

}  // namespace chord::gpu_test
