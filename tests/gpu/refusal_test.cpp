// What a launch refuses before anything is enqueued: the output stays as it was.
#include <fmt/format.h>

#include <functional>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int64_t kExperts = 4;
const KernelSpec kSpec{.n = 192, .k = 256, .block_m = 16};
const KernelSpec kMaskedSpec{.family = Family::grouped_masked, .n = 192, .k = 256};
const KernelSpec kPaddedSpec{.family = Family::grouped_contiguous, .n = 192, .k = 256};
const bool kRegistered = register_kernels([] {
  return std::vector{kSpec, kMaskedSpec, kPaddedSpec};
});

class GpuRefusal : public GpuTest {
 protected:
  void expect_refused(GemmRun& run, const std::string& names) {
    REQUIRE_OK(run.poison());
    const Status status = run.launch(stream());
    REQUIRE_OK(rig().stream.synchronize());
    ASSERT_FALSE(status.ok()) << names;
    EXPECT_NE(status.error().message().find(names), std::string::npos) << status.error().message();
    REQUIRE_VALUE(const std::vector<std::uint16_t> output, run.download_output());
    EXPECT_TRUE(output == std::vector<std::uint16_t>(output.size(), bench::kPoison)) << names;
  }

  // A checked launch of a routing that breaks its contract.
  void expect_checked_refused(const KernelSpec& spec, const Weights& weights, Routing routing,
                              const std::string& names) {
    REQUIRE_VALUE(GemmRun run, make_run(spec, weights, std::move(routing)));
    run.arguments.checked = true;
    expect_refused(run, names);
  }
};

Routing good_routing() {
  return bench::indexed(bench::random_top_k(12, kExperts, 2), kExperts, 2, kSpec.block_m);
}

TEST_F(GpuRefusal, AnotherLayoutVersionOrShape) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  REQUIRE_VALUE(GemmRun run, make_run(kSpec, weights, good_routing()));
  const PackedShape right = run.arguments.weight.shape;
  run.arguments.weight.shape.layout_version = 2;
  expect_refused(run, "version 2");
  for (const std::int64_t off : {8, 16, 32, 64}) {
    run.arguments.weight.shape = right;
    run.arguments.weight.shape.n += off;
    expect_refused(run, fmt::format("N={}", right.n + off));
    run.arguments.weight.shape = right;
    run.arguments.weight.shape.k -= off;
    expect_refused(run, fmt::format("K={}", right.k - off));
  }
  run.arguments.weight.shape = right;
  expect_right(run, "the right shape");
}

TEST_F(GpuRefusal, ShapesThatCanNotBePacked) {
  REQUIRE_VALUE(Weights weights, make_weights(kExperts, kSpec));
  const WeightSource source{weights.words.pointer(), CodeSource::words,
                            static_cast<const std::uint16_t*>(weights.scales.pointer()),
                            ScaleSource::row_major};
  for (const std::int64_t off : {8, 16, 32})
    for (const bool of_n : {true, false}) {
      PackedShape shape = weights.shape;
      (of_n ? shape.n : shape.k) -= off;
      const Status status = rig().engine.pack(
          source, shape, weights.packed_words.pointer(), weights.packed_scales.pointer(),
          static_cast<std::uint64_t*>(weights.status.pointer()), stream());
      ASSERT_FALSE(status.ok());
      const std::string number = std::to_string(of_n ? shape.n : shape.k);
      EXPECT_NE(status.error().message().find(number), std::string::npos);
      GemmDescriptor descriptor;
      descriptor.profile = "h200_decode_ep8";
      descriptor.n = shape.n;
      descriptor.k = shape.k;
      descriptor.experts = kExperts;
      descriptor.rows = 8;
      EXPECT_FALSE(rig().engine.plan(descriptor).ok());
    }
}

TEST_F(GpuRefusal, WorkspacePointersAndAlignment) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  REQUIRE_VALUE(GemmRun run, make_run(kSpec, weights, good_routing()));
  const GemmArguments right = run.arguments;
  const auto expect = [&](const std::function<void(GemmArguments&)>& change,
                          const std::string& names) {
    run.arguments = right;
    change(run.arguments);
    expect_refused(run, names);
  };
  expect([](GemmArguments& a) { a.workspace_bytes = 256; }, "workspace of 256 bytes");
  expect([](GemmArguments& a) { a.workspace = nullptr; }, "workspace is a null pointer");
  expect([](GemmArguments& a) { a.activations = nullptr; }, "activations is a null pointer");
  expect([](GemmArguments& a) { a.output = static_cast<char*>(a.output) + 2; }, "output");
  expect([](GemmArguments& a) { a.weight.codes = nullptr; }, "weight.codes");
  expect([](GemmArguments& a) { a.routing = MaskedRouting{}; }, "another routing");
  expect([](GemmArguments& a) { std::get<IndexedRouting>(a.routing).top_k = 0; }, "top_k 0");
}

TEST_F(GpuRefusal, CheckedModeNamesTheBrokenBlock) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  const auto broken = [](const std::function<void(Routing&)>& change) {
    Routing routing = good_routing();
    change(routing);
    return routing;
  };
  const auto expect = [&](const std::function<void(Routing&)>& change, const std::string& names) {
    expect_checked_refused(kSpec, weights, broken(change), names);
  };
  expect([](Routing& r) { r.num_tokens_padded -= 1; }, "num_tokens_padded");
  expect([](Routing& r) { r.num_tokens_padded += 16; }, "capacity");
  expect([](Routing& r) { r.sorted_ids[17] = r.sorted_ids[16]; }, "block 1 row 1");
  expect([](Routing& r) { std::swap(r.sorted_ids[32], r.sorted_ids[47]); }, "block 2");
  expect([](Routing& r) { r.expert_ids[2] = kExperts; }, "block 2 has expert 4");
}

TEST_F(GpuRefusal, CheckedModeOfTheGroupedFamilies) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  Routing masked = bench::masked({3, 1, 0, 8}, 8);
  masked.masked_m[1] = 9;
  expect_checked_refused(kMaskedSpec, weights, masked, "expert 1 has 9 rows");
  Routing padded = bench::padded_rows({3, 1, 0, 8});
  padded.groups32[5] = 2;
  expect_checked_refused(kPaddedSpec, weights, padded, "expert 2 begins at row 5");
  Routing ragged = bench::ragged_rows({3, 1, 0, 8}, abi::ContiguousSpelling::offsets32);
  ragged.groups32[2] = 1;
  expect_checked_refused(kPaddedSpec, weights, ragged, "offset 2 is 1");
}

TEST_F(GpuRefusal, CheckedModeLetsGoodRoutingsPass) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  REQUIRE_VALUE(GemmRun run, make_run(kSpec, weights, good_routing()));
  run.arguments.checked = true;
  expect_right(run, "checked");
}

TEST_F(GpuRefusal, CheckedModeInACaptureLeavesTheCaptureValid) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kSpec));
  REQUIRE_VALUE(GemmRun run, make_run(kSpec, weights, good_routing()));
  REQUIRE_VALUE(const bench::Graph graph, bench::Graph::capture(rig(), [&](cuda::CUstream s) {
                  run.arguments.checked = true;
                  EXPECT_FALSE(run.launch(s).ok());
                  run.arguments.checked = false;
                  return run.launch(s);
                }));
  REQUIRE_OK(run.poison());
  REQUIRE_OK(graph.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

}  // namespace
}  // namespace chord::gpu_test
