// The GPU packer: the bytes of the CPU packer, its refusals, no memory of its own, and a repack
// under a captured graph. And what a scale moves: its group of its column, nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/gpu/fixture.h"
#include "tests/weights/checkpoint.h"

namespace chord::gpu_test {
namespace {

const KernelSpec kScaleSpec{.family = Family::grouped_masked, .n = 128, .k = 192};
const KernelSpec kRepackSpec{.n = 256, .k = 256};
const bool kRegistered = register_kernels([] { return std::vector{kScaleSpec, kRepackSpec}; });

template <class Value>
Result<cuda::DeviceBuffer> uploaded(const Value* values, std::size_t count) {
  CHORD_TRY(cuda::DeviceBuffer buffer, cuda::DeviceBuffer::allocate(count * sizeof(Value)));
  CHORD_TRY(buffer.upload(values, count * sizeof(Value)));
  return buffer;
}

std::size_t code_bytes(const test::Checkpoint& from, CodeSource source) {
  if (source == CodeSource::codes_i32) return from.codes.size() * 4;
  return source == CodeSource::codes_u8 ? from.codes.size() : from.codes.size() / 2;
}

class GpuPacking : public GpuTest {
 protected:
  // Packs a host checkpoint on the GPU; `status` is what the packer reports.
  Status pack(const test::Checkpoint& from, CodeSource codes, ScaleSource scales,
              test::Packed& packed, Status& status) {
    const WeightSource host = from.source(codes, scales);
    CHORD_TRY(const cuda::DeviceBuffer device_codes,
              uploaded(static_cast<const char*>(host.codes), code_bytes(from, codes)));
    CHORD_TRY(const cuda::DeviceBuffer device_scales, uploaded(host.scales, from.scales.size()));
    CHORD_TRY(const cuda::DeviceBuffer weights,
              uploaded(packed.weights.data(), packed.weights.size()));
    CHORD_TRY(const cuda::DeviceBuffer packed_scales,
              uploaded(packed.scales.data(), packed.scales.size()));
    CHORD_TRY(const cuda::DeviceBuffer word, cuda::DeviceBuffer::allocate(sizeof(std::uint64_t)));
    CHORD_TRY(cuda::check(rig().driver->ctx_synchronize(), "wait for the uploads"));
    const WeightSource source{device_codes.pointer(), codes,
                              static_cast<const std::uint16_t*>(device_scales.pointer()), scales};
    CHORD_TRY(rig().engine.pack(source, from.shape, weights.pointer(), packed_scales.pointer(),
                                static_cast<std::uint64_t*>(word.pointer()), stream()));
    CHORD_TRY(rig().stream.synchronize());
    std::uint64_t found = 0;
    CHORD_TRY(word.download(&found, sizeof found));
    status = check_pack_status(found, from.shape);
    CHORD_TRY(weights.download(packed.weights.data(), packed.weights.size() * 4));
    return packed_scales.download(packed.scales.data(), packed.scales.size() * 2);
  }

  void expect_bytes_of_the_cpu(const test::Checkpoint& from, const std::string& what) {
    const test::Packed expected = test::expected_packed(from);
    for (const CodeSource codes : test::kCodeSources)
      for (const ScaleSource scales : test::kScaleSources) {
        test::Packed cpu(from.shape), gpu(from.shape);
        REQUIRE_OK(pack_weights(from.source(codes, scales), from.shape, cpu.weights.data(),
                                cpu.scales.data()));
        Status status;
        REQUIRE_OK(pack(from, codes, scales, gpu, status));
        EXPECT_TRUE(status.ok()) << what;
        EXPECT_TRUE(gpu == cpu) << what << ", " << static_cast<int>(codes);
        EXPECT_TRUE(gpu == expected) << what << ", " << static_cast<int>(codes);
      }
  }
};

TEST_F(GpuPacking, KnownCodeInEveryNibblePositionFromEverySource) {
  for (int nibble = 0; nibble < 8; ++nibble) {
    test::Checkpoint from = test::random_checkpoint(2, 128, 192, 100 + nibble);
    for (std::size_t at = nibble; at < from.codes.size(); at += 8)
      from.codes[at] = static_cast<std::uint8_t>(15 - nibble);
    from.spell();
    expect_bytes_of_the_cpu(from, fmt::format("nibble {}", nibble));
  }
}

TEST_F(GpuPacking, EverySourceOfAnOddShape) {
  expect_bytes_of_the_cpu(test::random_checkpoint(3, 64, 320, 11), "3 experts of 64x320");
}

TEST_F(GpuPacking, EverySourceOfGateAndUpRows) {
  for (const std::int64_t n : {64, 192})
    expect_bytes_of_the_cpu(test::random_checkpoint(3, n, 320, 12, RowOrder::gate_up),
                            fmt::format("3 experts of {}x320, gate/up rows", n));
}

TEST_F(GpuPacking, NamesTheOffenderThatTheCpuNames) {
  for (const ScaleSource scales : test::kScaleSources) {
    test::Checkpoint from = test::random_checkpoint(2, 128, 128, 5);
    for (const std::size_t at : {777u, 401u, 900u}) from.scales[at] = 0x7fc0;
    from.spell();
    test::Packed cpu(from.shape), gpu(from.shape);
    const Status refused = pack_weights(from.source(CodeSource::words, scales), from.shape,
                                        cpu.weights.data(), cpu.scales.data());
    ASSERT_FALSE(refused.ok());
    Status status;
    REQUIRE_OK(pack(from, CodeSource::words, scales, gpu, status));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message(), refused.error().message());
  }
}

TEST_F(GpuPacking, TakesNoMemoryOfItsOwn) {
  const KernelSpec layer{.n = 4096, .k = 7168};
  REQUIRE_VALUE(Weights weights, make_weights(48, layer));  // has packed once: the module is loaded
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE_OK(cuda::check(rig().driver->mem_get_info(&before, &total), "ask for free memory"));
  const WeightSource source{weights.words.pointer(), CodeSource::words,
                            static_cast<const std::uint16_t*>(weights.scales.pointer()),
                            ScaleSource::row_major};
  REQUIRE_OK(rig().engine.pack(source, weights.shape, weights.packed_words.pointer(),
                               weights.packed_scales.pointer(),
                               static_cast<std::uint64_t*>(weights.status.pointer()), stream()));
  REQUIRE_OK(cuda::check(rig().driver->mem_get_info(&after, &total), "ask for free memory"));
  REQUIRE_OK(rig().stream.synchronize());
  // The contract allows one expert of scratch.
  EXPECT_LE(before, after + static_cast<std::size_t>(weights.shape.weight_bytes() / 48));
}

TEST_F(GpuPacking, OneScaleMovesItsGroupOfItsColumn) {
  REQUIRE_VALUE(Weights weights, make_weights(4, kScaleSpec));
  const std::vector<std::uint16_t> ones(weights.scales.bytes() / 2, 0x3f80);
  REQUIRE_OK(weights.scales.upload(ones.data(), weights.scales.bytes()));
  REQUIRE_OK(weights.pack(rig()));
  REQUIRE_VALUE(GemmRun run, make_run(kScaleSpec, weights, bench::masked({3, 9, 0, 17}, 20)));
  REQUIRE_VALUE(const std::vector<std::uint16_t> base, run.bits());
  std::mt19937 draw(6);
  const std::int64_t groups = kScaleSpec.k / 32;
  for (int round = 0; round < 24; ++round) {
    const std::int64_t expert = round % 2 == 0 ? 1 : 3;
    const std::int64_t column = draw() % kScaleSpec.n, group = draw() % groups;
    const std::int64_t at = ((expert * kScaleSpec.n + column) * groups + group) * 2;
    const std::uint16_t four = 0x4080, one = 0x3f80;
    REQUIRE_OK(weights.scales.upload(&four, 2, at));
    REQUIRE_OK(weights.pack(rig()));
    const std::string what = fmt::format("expert {} column {} group {}", expert, column, group);
    expect_right(run, what);
    REQUIRE_VALUE(const std::vector<std::uint16_t> moved, run.download_output());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(moved.size()); ++i) {
      const bool may_move = i % kScaleSpec.n == column && i / kScaleSpec.n / 20 == expert;
      ASSERT_TRUE(may_move || moved[i] == base[i]) << what << " moved element " << i;
    }
    EXPECT_TRUE(moved != base) << what;
    REQUIRE_OK(weights.scales.upload(&one, 2, at));
  }
}

TEST_F(GpuPacking, RepackUnderACapturedGraph) {
  REQUIRE_VALUE(Weights weights, make_weights(8, kRepackSpec));
  const Routing routing = bench::indexed(bench::random_top_k(20, 8, 2), 8, 2, kRepackSpec.block_m);
  REQUIRE_VALUE(GemmRun run, make_run(kRepackSpec, weights, routing));
  REQUIRE_VALUE(const bench::Graph graph,
                bench::Graph::capture(rig(), [&](cuda::CUstream s) { return run.launch(s); }));
  REQUIRE_OK(graph.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const std::vector<std::uint16_t> before, run.download_output());

  REQUIRE_VALUE(const Weights other, make_weights(8, kRepackSpec, {.seed = 99}));
  std::vector<char> words(other.words.bytes());
  REQUIRE_OK(other.words.download(words.data(), words.size()));
  REQUIRE_OK(weights.words.upload(words.data(), words.size()));
  REQUIRE_OK(weights.pack(rig()));
  REQUIRE_OK(run.poison());
  REQUIRE_OK(graph.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison comparison, run.compare());  // the reference reads the new words
  EXPECT_EQ(comparison.violation(), "");
  REQUIRE_VALUE(const std::vector<std::uint16_t> after, run.download_output());
  EXPECT_TRUE(before != after);
}

}  // namespace
}  // namespace chord::gpu_test
