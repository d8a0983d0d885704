// What judges must be judged first: the reference against the CPU in FP64, and the comparison
// against outputs that are wrong on purpose.
#include <bit>
#include <cmath>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

const KernelSpec kSpec{.family = Family::grouped_masked, .n = 128, .k = 192};
const bool kRegistered = register_kernels([] { return std::vector{kSpec}; });

float value_of(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t bf16_of(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class Value>
std::vector<Value> downloaded(const cuda::DeviceBuffer& buffer) {
  std::vector<Value> values(buffer.bytes() / sizeof(Value));
  EXPECT_TRUE(buffer.download(values.data(), values.size() * sizeof(Value)).ok());
  return values;
}

// The GEMM in FP64 from the checkpoint, in BF16 where `run` would have it.
std::vector<std::uint16_t> computed_on_the_cpu(const GemmRun& run, const Weights& weights) {
  const auto words = downloaded<std::uint32_t>(weights.words);
  const auto scales = downloaded<std::uint16_t>(weights.scales);
  const auto x = downloaded<std::uint16_t>(run.activations);
  std::vector<std::uint16_t> out(run.output.bytes() / 2, bench::kPoison);
  const std::int64_t n_count = run.n(), k_count = run.k();
  for (const bench::OwnedRow& row : run.routing().owned)
    for (std::int64_t n = 0; n < n_count; ++n) {
      double sum = 0;
      const std::int64_t at = row.expert * n_count + n;
      for (std::int64_t k = 0; k < k_count; ++k) {
        const int code = words[(at * k_count + k) / 8] >> (4 * (k % 8)) & 15;
        const double weight =
            value_of(bf16_of((code - 8.0) * value_of(scales[(at * k_count + k) / 32])));
        sum += weight * value_of(x[row.source * k_count + k]);
      }
      out[row.output * n_count + n] = bf16_of(sum);
    }
  return out;
}

class GpuReference : public GpuTest {
 protected:
  // A run whose output the CPU has written.
  void make(std::optional<GemmRun>& run, std::optional<Weights>& weights) {
    REQUIRE_VALUE(weights, make_weights(3, kSpec, {.fifteen_codes = false}));
    REQUIRE_VALUE(run, make_run(kSpec, *weights, bench::masked({5, 0, 9}, 12)));
    out_ = computed_on_the_cpu(*run, *weights);
    REQUIRE_OK(run->output.upload(out_.data(), out_.size() * 2));
    REQUIRE_OK(cuda::check(rig().driver->ctx_synchronize(), "wait"));
  }

  // What the comparison says after `out_` has been changed.
  Comparison compare(GemmRun& run) {
    EXPECT_TRUE(run.output.upload(out_.data(), out_.size() * 2).ok());
    EXPECT_TRUE(cuda::check(rig().driver->ctx_synchronize(), "wait").ok());
    auto comparison = run.compare();
    EXPECT_TRUE(comparison.ok());
    return comparison.ok() ? *comparison : Comparison{};
  }

  std::vector<std::uint16_t> out_;
};

TEST_F(GpuReference, AgreesWithTheCpuInFp64) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  const Comparison comparison = compare(*run);
  EXPECT_EQ(comparison.violation(), "");
  EXPECT_EQ(comparison.rows, 14);
  EXPECT_GT(comparison.rel_l2, 0);  // both were really computed
}

TEST_F(GpuReference, ComparisonSeesOneWrongRow) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  for (std::int64_t n = 0; n < kSpec.n; ++n) std::swap(out_[n], out_[kSpec.n + n]);
  const Comparison comparison = compare(*run);
  EXPECT_GT(comparison.worst_row_l2, 0.1);
  EXPECT_LE(comparison.worst_row, 1);
  EXPECT_EQ(comparison.worst_expert, 0);
  EXPECT_NE(comparison.violation(), "");
}

TEST_F(GpuReference, ComparisonSeesOneWrongElement) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  out_[3 * kSpec.n + 77] = bf16_of(value_of(out_[3 * kSpec.n + 77]) + 0.5);
  EXPECT_EQ(compare(*run).outliers, 1);
}

TEST_F(GpuReference, ComparisonSeesWhatWasNotWritten) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  out_[5] = bench::kPoison;
  const Comparison comparison = compare(*run);
  EXPECT_EQ(comparison.unwritten, 1);
  EXPECT_EQ(comparison.non_finite, 1);
}

TEST_F(GpuReference, ComparisonSeesAWriteWhereNobodyOwns) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  out_[6 * kSpec.n + 1] = 0;  // a row past the first expert's five
  EXPECT_EQ(compare(*run).changed, 1);
}

TEST_F(GpuReference, ComparisonSeesAFlagThatWasLeft) {
  std::optional<Weights> weights;
  std::optional<GemmRun> run;
  ASSERT_NO_FATAL_FAILURE(make(run, weights));
  const std::int32_t one = 1;
  REQUIRE_OK(run->workspace.upload(&one, sizeof one, 64));
  EXPECT_EQ(compare(*run).flags_left, 1);
}

}  // namespace
}  // namespace chord::gpu_test
