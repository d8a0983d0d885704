// How launches behave together: the same bits every time, two streams, graphs, programmatic
// dependent launches.
#include <fmt/format.h>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int64_t kExperts = 8;

// Few tiles and a deep K: every tile is finished by many CTAs.
KernelSpec deep() {
  KernelSpec spec{.n = 256, .k = 7168};
  spec.pins.split = abi::Split::even;
  return spec;
}

const KernelSpec kPlain{.n = 576, .k = 1024, .block_m = 16};
const bool kRegistered = register_kernels([] { return std::vector{deep(), kPlain}; });

class GpuLaunch : public GpuTest {};

TEST_F(GpuLaunch, HundredRunsGiveTheSameBits) {
  const KernelSpec spec = deep();
  REQUIRE_VALUE(const Weights weights, make_weights(2, spec));
  for (const std::vector<std::int64_t>& counts :
       std::vector<std::vector<std::int64_t>>{{8, 3}, {40, 5}, {1, 0}}) {
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, counts)));
    REQUIRE_VALUE(const std::vector<std::uint16_t> first, run.bits());
    for (int i = 1; i < 100; ++i) {
      REQUIRE_VALUE(const std::vector<std::uint16_t> again, run.bits());
      ASSERT_TRUE(again == first) << "run " << i << " differs";
    }
    expect_right(run, "the last run");
  }
}

TEST_F(GpuLaunch, BackToBackLaunchesShareAWorkspace) {
  const KernelSpec spec = deep();
  REQUIRE_VALUE(const Weights weights, make_weights(2, spec));
  REQUIRE_VALUE(GemmRun run, make_run(spec, weights, routing_of(spec, {9, 17})));
  for (int i = 0; i < 200; ++i) REQUIRE_OK(run.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

TEST_F(GpuLaunch, TwoStreamsWithAWorkspaceEach) {
  REQUIRE_VALUE(const Weights deep_weights, make_weights(kExperts, deep()));
  REQUIRE_VALUE(const Weights plain_weights, make_weights(kExperts, kPlain));
  const std::vector<std::int64_t> counts{8, 3, 0, 20, 1, 9, 16, 5};
  REQUIRE_VALUE(GemmRun one, make_run(deep(), deep_weights, routing_of(deep(), counts)));
  REQUIRE_VALUE(GemmRun two,
                make_run(deep(), deep_weights, routing_of(deep(), counts), {.seed = 8}));
  REQUIRE_VALUE(GemmRun three, make_run(kPlain, plain_weights, routing_of(kPlain, counts)));
  REQUIRE_VALUE(const cuda::OwnedStream second, cuda::OwnedStream::create());
  REQUIRE_VALUE(const cuda::OwnedStream third, cuda::OwnedStream::create());
  for (int i = 0; i < 50; ++i) {
    REQUIRE_OK(one.launch(stream()));
    REQUIRE_OK(two.launch(second.handle()));
    REQUIRE_OK(three.launch(third.handle()));
  }
  REQUIRE_OK(cuda::check(rig().driver->ctx_synchronize(), "wait for all streams"));
  for (GemmRun* run : {&one, &two, &three}) {
    REQUIRE_VALUE(const Comparison comparison, run->compare());
    EXPECT_EQ(comparison.violation(), "");
  }
}

TEST_F(GpuLaunch, FirstLaunchOfAStreamMayBeCaptured) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kPlain));
  REQUIRE_VALUE(GemmRun run,
                make_run(kPlain, weights, routing_of(kPlain, {8, 3, 0, 20, 1, 9, 16, 5})));
  REQUIRE_VALUE(const bench::Graph graph,
                bench::Graph::capture(rig(), [&](cuda::CUstream s) { return run.launch(s); }));
  for (int replay = 0; replay < 3; ++replay) {
    REQUIRE_OK(run.poison());
    REQUIRE_OK(graph.launch(stream()));
    REQUIRE_OK(rig().stream.synchronize());
    REQUIRE_VALUE(const Comparison comparison, run.compare());
    EXPECT_EQ(comparison.violation(), "") << "replay " << replay;
  }
}

TEST_F(GpuLaunch, GraphReadsTheRoutingOfTheMoment) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kPlain));
  REQUIRE_VALUE(GemmRun run,
                make_run(kPlain, weights, routing_of(kPlain, {8, 3, 0, 20, 1, 9, 16, 5})));
  REQUIRE_VALUE(const bench::Graph graph,
                bench::Graph::capture(rig(), [&](cuda::CUstream s) { return run.launch(s); }));
  const auto& routing = std::get<IndexedRouting>(run.arguments.routing);
  const std::int32_t none = 0;
  REQUIRE_OK(cuda::check(rig().driver->memcpy_htod(cuda::device_address(routing.num_tokens_padded),
                                                   &none, sizeof none),
                         "route nothing"));
  REQUIRE_OK(run.poison());
  REQUIRE_OK(graph.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const std::vector<std::uint16_t> output, run.download_output());
  EXPECT_TRUE(output == std::vector<std::uint16_t>(output.size(), bench::kPoison));
}

// The down projection reads what gate/up has just written: a dependent launch must wait for it.
TEST_F(GpuLaunch, DependentLaunchesSeeWhatWasWrittenBefore) {
  const KernelSpec first = deep();
  KernelSpec second = deep();
  second.k = first.n;
  second.n = 576;
  REQUIRE_VALUE(const Weights first_weights, make_weights(kExperts, first));
  REQUIRE_VALUE(const Weights second_weights, make_weights(kExperts, second));
  const Routing routing = routing_of(first, {8, 3, 0, 20, 1, 9, 16, 5});
  REQUIRE_VALUE(GemmRun up, make_run(first, first_weights, routing));
  REQUIRE_VALUE(GemmRun down, make_run(second, second_weights, routing));
  up.arguments.output = down.activations.pointer();
  up.arguments.programmatic_dependent_launch = true;
  down.arguments.programmatic_dependent_launch = true;
  for (int i = 0; i < 20; ++i) {
    REQUIRE_OK(down.activations.fill(0xff));
    REQUIRE_OK(down.poison());
    REQUIRE_OK(up.launch(stream()));
    REQUIRE_OK(down.launch(stream()));
    REQUIRE_OK(rig().stream.synchronize());
    REQUIRE_VALUE(const Comparison comparison, down.compare());
    ASSERT_EQ(comparison.violation(), "") << "round " << i;
  }
}

const bool kRegisteredDown = register_kernels([] {
  KernelSpec second = deep();
  second.k = deep().n;
  second.n = 576;
  return std::vector{second};
});

}  // namespace
}  // namespace chord::gpu_test
