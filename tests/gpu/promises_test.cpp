// What a launch promises an inference engine: it allocates nothing, synchronises nothing, reads no
// file, and nothing around it spoils a stream capture; dependent launches are asked for as such; a
// process may use two GPUs.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>

#include "tests/gpu/allocations.h"
#include "tests/gpu/counting_driver.h"
#include "tests/gpu/fixture.h"
#include "tests/weights/checkpoint.h"

namespace chord::gpu_test {
namespace {

const std::vector<std::int64_t> kCounts{8, 3, 0, 20, 1, 9, 16, 5};

KernelSpec spec_of(Family family) { return {.family = family, .n = 576, .k = 1024, .block_m = 16}; }

// An indexed one whose profile's name is too long to be held without memory of its own.
GemmDescriptor prefill_descriptor(Architecture arch) {
  GemmDescriptor descriptor;
  descriptor.arch = arch;
  descriptor.n = 576;
  descriptor.k = 1024;
  descriptor.experts = 8;
  descriptor.rows = 62;
  descriptor.block_m = 16;
  descriptor.profile = "h200_prefill_ep8";
  return descriptor;
}

// Planned, as an engine would: by a descriptor.
GemmDescriptor descriptor_of(Architecture arch) {
  GemmDescriptor descriptor;
  descriptor.family = Family::grouped_masked;
  descriptor.arch = arch;
  descriptor.n = 576;
  descriptor.k = 1024;
  descriptor.experts = 8;
  descriptor.max_m = 20;
  descriptor.expected_m = 8;
  return descriptor;
}

const bool kRegistered = register_kernels([] {
  return std::vector{spec_of(Family::indexed), spec_of(Family::grouped_contiguous),
                     spec_of(Family::grouped_masked)};
});
const bool kRegisteredPlans =
    register_kernels([](const Engine& engine, Architecture arch) -> Decisions {
      CHORD_TRY(Decision masked, engine.plan(descriptor_of(arch)));
      CHORD_TRY(Decision prefill, engine.plan(prefill_descriptor(arch)));
      return std::vector{std::move(masked), std::move(prefill)};
    });

// Reads of files by this process.
std::int64_t reads_of_process() {
  std::ifstream io("/proc/self/io");
  std::string field;
  for (std::int64_t value = 0; io >> field >> value;)
    if (field == "syscr:") return value;
  return -1;
}

class GpuPromises : public GpuTest {};

TEST_F(GpuPromises, ALaunchAllocatesNothingWaitsForNothingAndReadsNoFile) {
  for (const Family family : kFamilies) {
    const KernelSpec spec = spec_of(family);
    REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, kCounts)));
    REQUIRE_VALUE(const PreparedKernel prepared, prepare(spec));
    const PreparedKernel kernel = counted(prepared);
    REQUIRE_OK(rig().engine.launch(kernel, run.arguments, stream()));  // the driver's own firsts
    REQUIRE_OK(rig().stream.synchronize());
    constexpr int kLaunches = 50;
    bool all_launched = true;
    ASSERT_GE(reads_of_process(), 0) << "/proc/self/io says nothing of reads";
    reset_driver_calls();
    const std::int64_t own_reads = [] {
      const std::int64_t before = reads_of_process();
      return reads_of_process() - before;
    }();
    const std::int64_t reads = reads_of_process();
    const std::int64_t allocated = allocations_of_this_thread();
    for (int i = 0; i < kLaunches; ++i)
      all_launched &= rig().engine.launch(kernel, run.arguments, stream()).ok();
    EXPECT_EQ(allocations_of_this_thread() - allocated, 0) << name(family);
    EXPECT_EQ(reads_of_process() - reads, own_reads) << name(family);
    EXPECT_TRUE(all_launched);
    const std::map<std::string, int> calls = driver_calls();
    EXPECT_EQ(calls.at("cuLaunchKernelEx"), kLaunches);
    for (const auto& [call, count] : calls)
      EXPECT_TRUE(call == "cuLaunchKernelEx" || call == "cuTensorMapEncodeTiled") << call;
    REQUIRE_OK(rig().stream.synchronize());
    REQUIRE_VALUE(const Comparison comparison, run.compare());
    EXPECT_EQ(comparison.violation(), "");
  }
}

TEST_F(GpuPromises, TheCountersSeeAnAllocationAndADriverCall) {
  const std::int64_t allocated = allocations_of_this_thread();
  delete new int;
  const std::string long_text(1000, 'x');
  EXPECT_GE(allocations_of_this_thread() - allocated, 1) << long_text.size();
  reset_driver_calls();
  counting_driver(*rig().driver).ctx_synchronize();
  EXPECT_EQ(driver_calls(), (std::map<std::string, int>{{"cuCtxSynchronize", 1}}));
  const std::int64_t first = reads_of_process();
  const std::int64_t second = reads_of_process();
  std::string word;
  std::ifstream("/proc/self/stat") >> word;
  EXPECT_GT(reads_of_process() - second, second - first);
}

TEST_F(GpuPromises, ALaunchByDescriptorAllocatesNothing) {
  const GemmDescriptor descriptor = prefill_descriptor(rig().device.arch);
  const KernelSpec spec = spec_of(Family::indexed);
  REQUIRE_VALUE(const PreparedKernel kernel, rig().engine.prepare(descriptor));
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun run, GemmRun::make(rig(), kernel, weights, routing_of(spec, kCounts), {}));
  REQUIRE_OK(rig().engine.launch(descriptor, run.arguments, stream()));
  const std::int64_t allocated = allocations_of_this_thread();
  bool all_launched = true;
  for (int i = 0; i < 20; ++i)
    all_launched &= rig().engine.launch(descriptor, run.arguments, stream()).ok();
  EXPECT_EQ(allocations_of_this_thread() - allocated, 0);
  EXPECT_TRUE(all_launched);
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

TEST_F(GpuPromises, LayerKernelsAllocateNothingEither) {
  REQUIRE_VALUE(const LayerKernels kernels, rig().engine.prepare_layer_kernels());
  constexpr int kTokens = 1000, kTopK = 8, kExperts = 16, kColumns = 64;
  REQUIRE_VALUE(auto memory, cuda::DeviceBuffer::allocate(std::size_t{16} << 20));
  REQUIRE_OK(memory.fill(0));
  const auto at = [&](int mib) { return static_cast<char*>(memory.pointer()) + (mib << 20); };
  GateArguments gate;
  gate.logits = at(0);
  gate.tokens = kTokens;
  gate.experts = kExperts;
  gate.top_k = kTopK;
  gate.ids = reinterpret_cast<std::int32_t*>(at(1));
  gate.weights = reinterpret_cast<float*>(at(2));
  AlignArguments align;
  align.ids = gate.ids;
  align.num_ids = kTokens * kTopK;
  align.experts = kExperts;
  align.block_m = 16;
  align.sorted_ids = reinterpret_cast<std::int32_t*>(at(3));
  align.expert_ids = reinterpret_cast<std::int32_t*>(at(4));
  align.num_tokens_padded = reinterpret_cast<std::int32_t*>(at(5));
  align.capacity = align_capacity(align.num_ids, kExperts, align.block_m);
  align.workspace = at(6);
  align.workspace_bytes = align_workspace_bytes(align.num_ids, kExperts);
  const SwigluArguments swiglu{at(7), at(9), kTokens * kTopK, kColumns / 2};
  const CombineArguments combine{at(10), gate.weights, at(12), kTokens, kTopK, kColumns};
  const auto launch_all = [&] {
    return rig().engine.launch(kernels, gate, stream()).ok() &&
           rig().engine.launch(kernels, align, stream()).ok() &&
           rig().engine.launch(kernels, swiglu, stream()).ok() &&
           rig().engine.launch(kernels, combine, stream()).ok();
  };
  ASSERT_TRUE(launch_all());
  const std::int64_t allocated = allocations_of_this_thread();
  bool all_launched = true;
  for (int i = 0; i < 20; ++i) all_launched &= launch_all();
  EXPECT_EQ(allocations_of_this_thread() - allocated, 0);
  EXPECT_TRUE(all_launched);
  REQUIRE_OK(rig().stream.synchronize());
}

TEST_F(GpuPromises, ADependentLaunchIsAskedForOnlyWhereTheArgumentsSaySo) {
  const KernelSpec spec = spec_of(Family::indexed);
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, kCounts)));
  REQUIRE_VALUE(const PreparedKernel prepared, prepare(spec));
  const PreparedKernel kernel = counted(prepared);
  REQUIRE_OK(rig().engine.launch(kernel, run.arguments, stream()));
  EXPECT_EQ(last_launch().attributes, 0u);
  run.arguments.programmatic_dependent_launch = true;
  REQUIRE_OK(rig().engine.launch(kernel, run.arguments, stream()));
  EXPECT_TRUE(last_launch().is_programmatic);
  REQUIRE_OK(rig().stream.synchronize());
}

// The strictest mode: any unsafe call of any thread would spoil the capture.
class GlobalCapture {
 public:
  GlobalCapture(const cuda::DriverApi& driver, cuda::CUstream stream)
      : driver_(driver), stream_(stream) {}
  Status begin() {
    return cuda::check(driver_.stream_begin_capture(stream_, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL),
                       "begin a capture");
  }
  // Ends it and runs what was captured.
  Status end_and_run() {
    cuda::CUgraph graph = nullptr;
    cuda::CUgraphExec exec = nullptr;
    CHORD_TRY(cuda::check(driver_.stream_end_capture(stream_, &graph), "end a capture"));
    CHORD_TRY(cuda::check(driver_.graph_instantiate(&exec, graph, 0), "instantiate a graph"));
    CHORD_TRY(cuda::check(driver_.graph_get_nodes(graph, nullptr, &nodes), "count the nodes"));
    const Status run = cuda::check(driver_.graph_launch(exec, stream_), "launch a graph");
    const Status done = cuda::check(driver_.stream_synchronize(stream_), "wait for a graph");
    driver_.graph_exec_destroy(exec);
    driver_.graph_destroy(graph);
    return run.ok() ? done : run;
  }

  std::size_t nodes = 0;  // of what was captured

 private:
  const cuda::DriverApi& driver_;
  cuda::CUstream stream_;
};

TEST_F(GpuPromises, AnUnpreparedKernelIsNamedDuringACaptureAndTheCaptureSurvives) {
  const KernelSpec spec = spec_of(Family::grouped_masked);
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, kCounts)));
  REQUIRE_VALUE(const Engine engine, Engine::create({}));  // which has prepared nothing
  const GemmDescriptor descriptor = descriptor_of(rig().device.arch);
  REQUIRE_VALUE(const cuda::OwnedStream fresh, cuda::OwnedStream::create());
  REQUIRE_OK(run.poison());
  GlobalCapture capture(*rig().driver, fresh.handle());
  REQUIRE_OK(capture.begin());
  const Status refused = engine.launch(descriptor, run.arguments, fresh.handle());
  const Status launched = run.launch(fresh.handle());
  const Status ended = capture.end_and_run();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::not_prepared);
  EXPECT_NE(refused.error().message().find("N=576 K=1024"), std::string::npos)
      << refused.error().message();
  REQUIRE_OK(launched);
  REQUIRE_OK(ended);
  EXPECT_EQ(capture.nodes, 1u);  // the prepared one, and nothing of the other
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

TEST_F(GpuPromises, PreparingDuringACaptureLeavesItValidAndLaunchesAfterIt) {
  const KernelSpec spec = spec_of(Family::grouped_masked);
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, kCounts)));
  REQUIRE_VALUE(Engine engine, Engine::create({}));  // which has loaded nothing
  const GemmDescriptor descriptor = descriptor_of(rig().device.arch);
  REQUIRE_VALUE(const cuda::OwnedStream fresh, cuda::OwnedStream::create());
  REQUIRE_OK(run.poison());
  GlobalCapture capture(*rig().driver, fresh.handle());
  REQUIRE_OK(capture.begin());
  auto prepared = engine.prepare(descriptor);
  const Result<LayerKernels> layer = engine.prepare_layer_kernels();
  const Status launched = engine.launch(descriptor, run.arguments, fresh.handle());
  const Status ended = capture.end_and_run();
  REQUIRE_OK(prepared);
  REQUIRE_OK(layer);
  REQUIRE_OK(launched);
  REQUIRE_OK(ended);
  REQUIRE_VALUE(const Comparison captured, run.compare());
  EXPECT_EQ(captured.violation(), "");
  REQUIRE_OK(run.poison());
  REQUIRE_OK(engine.launch(descriptor, run.arguments, stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison eager, run.compare());
  EXPECT_EQ(eager.violation(), "");
}

// A kernel goes with its last owner, also while something is captured.
TEST_F(GpuPromises, UnloadingDuringACaptureLeavesItValid) {
  const KernelSpec spec = spec_of(Family::grouped_masked);
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, kCounts)));
  REQUIRE_VALUE(const cuda::OwnedStream fresh, cuda::OwnedStream::create());
  REQUIRE_OK(run.poison());
  GlobalCapture capture(*rig().driver, fresh.handle());
  {
    REQUIRE_VALUE(Engine engine, Engine::create({}));
    REQUIRE_OK(engine.prepare(descriptor_of(rig().device.arch)));
    REQUIRE_OK(capture.begin());
  }
  const Status launched = run.launch(fresh.handle());
  REQUIRE_OK(capture.end_and_run());
  REQUIRE_OK(launched);
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

TEST_F(GpuPromises, TwoGpusInOneProcess) {
  int count = 0;
  REQUIRE_OK(cuda::check(rig().driver->device_get_count(&count), "count the GPUs"));
  if (count < 2) GTEST_SKIP() << "needs two GPUs, this machine has " << count;
  const KernelSpec spec = spec_of(Family::indexed);
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec));
  REQUIRE_VALUE(GemmRun first, make_run(spec, weights, routing_of(spec, kCounts)));
  const GemmDescriptor descriptor = descriptor_of(rig().device.arch);
  REQUIRE_OK(rig().engine.prepare(descriptor));
  REQUIRE_VALUE(const PreparedKernel first_kernel, prepare(spec));
  {
    // Another context is current from here on; the first engine also serves it.
    REQUIRE_VALUE(const std::unique_ptr<Rig> other, Rig::create({}, 1));
    const Status elsewhere = rig().engine.launch(first_kernel, first.arguments, nullptr);
    ASSERT_FALSE(elsewhere.ok());
    EXPECT_NE(elsewhere.error().message().find("another CUDA context"), std::string::npos)
        << elsewhere.error().message();
    const KernelSpec masked = spec_of(Family::grouped_masked);
    REQUIRE_VALUE(const Weights there,
                  Weights::make(*other, {.experts = 8, .n = spec.n, .k = spec.k}, {}));
    // By the descriptor that is prepared on the first GPU: another kernel here.
    REQUIRE_VALUE(const PreparedKernel kernel, rig().engine.prepare(descriptor));
    REQUIRE_VALUE(GemmRun second,
                  GemmRun::make(*other, kernel, there, routing_of(masked, kCounts), {.seed = 9}));
    REQUIRE_OK(second.poison());
    REQUIRE_OK(rig().engine.launch(descriptor, second.arguments, other->stream.handle()));
    REQUIRE_OK(other->stream.synchronize());
    REQUIRE_VALUE(const Comparison comparison, second.compare());
    EXPECT_EQ(comparison.violation(), "");
  }
  expect_right(first, "the first GPU, after the second");
}

// K of down is cut by tensor parallelism: the shards' outputs sum up to the whole.
const std::int64_t kShardDepths[] = {1024, 512, 256, 128, 64};
KernelSpec shard_spec(std::int64_t k) { return {.n = 256, .k = k, .block_m = 8}; }
const bool kRegisteredShards = register_kernels([] {
  std::vector<KernelSpec> specs;
  for (const std::int64_t k : kShardDepths) specs.push_back(shard_spec(k));
  return specs;
});

// Columns [first, first + k) of every row of a [rows, whole] tensor.
template <class Value>
std::vector<Value> columns_of(const std::vector<Value>& tensor, std::int64_t whole,
                              std::int64_t first, std::int64_t k) {
  std::vector<Value> part;
  for (std::size_t row = 0; row < tensor.size() / whole; ++row) {
    const auto begin = tensor.begin() + static_cast<std::ptrdiff_t>(row * whole + first);
    part.insert(part.end(), begin, begin + k);
  }
  return part;
}

float value_of(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

TEST_F(GpuPromises, ShardsOfTensorParallelismSumUpToTheWhole) {
  constexpr std::int64_t kWhole = 1024;
  const KernelSpec whole = shard_spec(kWhole);
  const Routing routing = routing_of(whole, {8, 3, 20});
  const test::Checkpoint checkpoint = test::random_checkpoint(3, whole.n, kWhole, 5);
  std::vector<std::uint16_t> activations;
  std::vector<double> expected;
  for (const std::int64_t k : kShardDepths) {
    const KernelSpec spec = shard_spec(k);
    std::vector<double> sum(static_cast<std::size_t>(routing.output_rows * spec.n), 0.0);
    for (std::int64_t first = 0; first < kWhole; first += k) {
      test::Checkpoint part;
      part.shape = {.experts = 3, .n = spec.n, .k = k};
      part.codes = columns_of(checkpoint.codes, kWhole, first, k);
      part.scales = columns_of(checkpoint.scales, kWhole / 32, first / 32, k / 32);
      part.spell();
      REQUIRE_VALUE(Weights weights, make_weights(3, spec));
      REQUIRE_OK(weights.words.upload(part.words.data(), part.words.size() * 4));
      REQUIRE_OK(weights.scales.upload(part.scales.data(), part.scales.size() * 2));
      REQUIRE_OK(weights.pack(rig()));
      REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing));
      if (activations.empty()) {
        activations.resize(static_cast<std::size_t>(routing.source_rows * kWhole));
        REQUIRE_OK(run.activations.download(activations.data(), activations.size() * 2));
      }
      const auto own = columns_of(activations, kWhole, first, k);
      REQUIRE_OK(run.activations.upload(own.data(), own.size() * 2));
      REQUIRE_VALUE(const std::vector<std::uint16_t> output, run.bits());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += value_of(output[i]);
    }
    if (k == kWhole) expected = sum;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      difference += (sum[i] - expected[i]) * (sum[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LE(std::sqrt(difference / norm), 6e-3) << "shards of K " << k;
  }
}

}  // namespace
}  // namespace chord::gpu_test
