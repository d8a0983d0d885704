// What a serving process does beside launching: many threads that plan, prepare and launch at once,
// and a fork after the library has looked into its cache.
#include "tests/gpu/service_test.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "chord/model.h"
#include "tests/gpu/fixture.h"
#include "tests/support/child_process.h"

namespace chord::gpu_test {
namespace {

constexpr int kThreads = 8;
constexpr int kLaunches = 25;

KernelSpec spec_of(int thread) {
  return {.n = 576, .k = 1024, .block_m = thread % 2 == 0 ? 16 : 8};
}

const bool kRegistered = register_kernels([] { return std::vector{spec_of(0), spec_of(1)}; });

class GpuService : public GpuTest {};

TEST_F(GpuService, EightThreadsLaunchOnEightStreamsWhileOthersPlanAndPrepare) {
  const std::vector<std::int64_t> counts{8, 3, 0, 20, 1, 9, 16, 5};
  REQUIRE_VALUE(const Weights weights, make_weights(8, spec_of(0)));
  std::vector<GemmRun> runs;
  std::vector<cuda::OwnedStream> streams;
  for (int i = 0; i < kThreads; ++i) {
    REQUIRE_VALUE(GemmRun run, make_run(spec_of(i), weights, routing_of(spec_of(i), counts),
                                        {.seed = static_cast<std::uint64_t>(i + 1)}));
    runs.push_back(std::move(run));
    REQUIRE_VALUE(cuda::OwnedStream stream, cuda::OwnedStream::create());
    streams.push_back(std::move(stream));
  }
  std::atomic<bool> is_over{false};
  std::atomic<int> failures{0};
  std::vector<std::jthread> beside;
  for (int i = 0; i < 2; ++i)
    beside.emplace_back([&, i] {
      if (rig().driver->ctx_set_current(rig().context.handle()) != 0) ++failures;
      while (!is_over) failures += prepare(spec_of(i)).ok() ? 0 : 1;
    });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        if (rig().driver->ctx_set_current(rig().context.handle()) != 0) ++failures;
        for (int launch = 0; launch < kLaunches; ++launch)
          failures += runs[i].launch(streams[i].handle()).ok() ? 0 : 1;
      });
  }
  is_over = true;
  beside.clear();
  REQUIRE_OK(cuda::check(rig().driver->ctx_synchronize(), "wait for all streams"));
  EXPECT_EQ(failures, 0);
  for (GemmRun& run : runs) {
    REQUIRE_VALUE(const Comparison comparison, run.compare());
    EXPECT_EQ(comparison.violation(), "");
  }
}

// In a process that has not touched CUDA: another one than this.
TEST_F(GpuService, AChildThatWasForkedAfterExplainAndCheckLaunches) {
  EXPECT_EQ(testing::ChildProcess::start_self({kForkFlag}).wait(), 0);
}

// The CUDA driver is a library that a process has mapped or has not.
bool has_touched_cuda() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libcuda.so") != std::string::npos) return true;
  return false;
}

Status launch_once() {
  CHORD_TRY(const std::unique_ptr<Rig> rig, Rig::create({}));
  const KernelSpec spec = spec_of(0);
  CHORD_TRY(const Decision decision, decision_of(spec, rig->device.arch));
  CHORD_TRY(const PreparedKernel kernel, rig->engine.prepare(decision));
  CHORD_TRY(const Weights weights,
            Weights::make(*rig, {.experts = 4, .n = spec.n, .k = spec.k}, {}));
  CHORD_TRY(GemmRun run, GemmRun::make(*rig, kernel, weights, routing_of(spec, {8, 3, 0, 20}), {}));
  CHORD_TRY(run.launch(rig->stream.handle()));
  CHORD_TRY(rig->stream.synchronize());
  CHORD_TRY(const Comparison comparison, run.compare());
  if (comparison.violation().empty()) return {};
  return Error{ErrorCode::internal, "a launch after fork", comparison.violation(), ""};
}

Status explain_and_check() {
  CHORD_TRY(Engine engine, Engine::create({}));
  Deployment deployment;
  deployment.model = *builtin_model("kimi-k2.5");
  deployment.shard = {.axis = ShardAxis::expert, .ways = 8};
  deployment.roles = {Role::decode};
  deployment.min_rows = deployment.max_rows = 160;
  CHORD_TRY(LayerDescriptor layer, shard_layer(deployment.model, deployment.shard));
  layer.rows = 160;
  CHORD_TRY(engine.explain(layer));
  CHORD_TRY(engine.prewarm(deployment, {.check = true}));
  return {};
}

}  // namespace

int fork_after_explain() {
  if (!explain_and_check().ok()) return 2;
  if (has_touched_cuda()) return 3;
  testing::ChildProcess child = testing::ChildProcess::run([] {
    const Status launched = launch_once();
    if (!launched) std::fprintf(stderr, "%s\n", launched.error().message().c_str());
    return launched.ok() ? 0 : 4;
  });
  return child.wait();
}

}  // namespace chord::gpu_test
