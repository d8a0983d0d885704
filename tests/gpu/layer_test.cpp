// The kernels around the GEMMs: alignment against moe_align_block_size on the host, gating against
// FP64, SwiGLU and the weighted sum; what is skipped is not read and not written.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

constexpr std::int32_t kUntouched = -77;

std::uint16_t bf16_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float value_of(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
std::vector<std::uint16_t> random_bf16(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) value = bf16_of(normal(generator));
  return values;
}

template <class Value>
Result<cuda::DeviceBuffer> uploaded(const std::vector<Value>& values) {
  const std::size_t bytes = values.size() * sizeof(Value);
  CHORD_TRY(cuda::DeviceBuffer buffer,
            cuda::DeviceBuffer::allocate(std::max<std::size_t>(bytes, 256)));
  CHORD_TRY(buffer.upload(values.data(), bytes));
  return buffer;
}
template <class Value>
Result<std::vector<Value>> downloaded(const cuda::DeviceBuffer& buffer, std::size_t count) {
  std::vector<Value> values(count);
  CHORD_TRY(buffer.download(values.data(), count * sizeof(Value)));
  return values;
}

// What a routing says, on the host.
struct AlignCase {
  std::vector<std::int32_t> ids;
  int experts = 8;
  int block_m = 16;
  std::vector<std::int32_t> expert_map = {};
  ForeignExperts foreign = ForeignExperts::skip;
};

struct Aligned {
  std::vector<std::int32_t> sorted_ids, expert_ids;  // of the padded prefix
  bool operator==(const Aligned&) const = default;
};

Aligned align_on_host(const AlignCase& from) {
  Aligned result;
  const auto sentinel = static_cast<std::int32_t>(from.ids.size());
  for (int expert = 0; expert < from.experts; ++expert) {
    const int local = from.expert_map.empty() ? expert : from.expert_map[expert];
    if (local < 0 && from.foreign == ForeignExperts::skip) continue;
    int rows = 0;
    for (std::size_t i = 0; i < from.ids.size(); ++i) {
      if (from.ids[i] != expert) continue;
      if (rows % from.block_m == 0) result.expert_ids.push_back(local < 0 ? -1 : local);
      result.sorted_ids.push_back(static_cast<std::int32_t>(i));
      ++rows;
    }
    for (; rows % from.block_m != 0; ++rows) result.sorted_ids.push_back(sentinel);
  }
  return result;
}

class GpuLayer : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto kernels = rig().engine.prepare_layer_kernels();
    ASSERT_TRUE(kernels.ok()) << kernels.error().message();
    kernels_.emplace(std::move(kernels).value());
  }

  Result<Aligned> align(const AlignCase& from) {
    const auto num_ids = static_cast<std::int64_t>(from.ids.size());
    const std::int64_t capacity = align_capacity(num_ids, from.experts, from.block_m);
    const std::size_t blocks = static_cast<std::size_t>(capacity / from.block_m + 2);
    CHORD_TRY(const auto ids, uploaded(from.ids));
    CHORD_TRY(const auto map, uploaded(from.expert_map));
    // 16 entries behind the capacity must stay as they are.
    const std::vector<std::int32_t> untouched(static_cast<std::size_t>(capacity) + 16, kUntouched);
    CHORD_TRY(const auto sorted, uploaded(untouched));
    CHORD_TRY(const auto experts, uploaded(std::vector<std::int32_t>(blocks, kUntouched)));
    CHORD_TRY(const auto padded, uploaded(std::vector<std::int32_t>{kUntouched}));
    const std::size_t workspace = align_workspace_bytes(num_ids, from.experts);
    CHORD_TRY(const auto scratch, uploaded(std::vector<char>(workspace, 0x5a)));
    AlignArguments arguments;
    arguments.ids = static_cast<const std::int32_t*>(ids.pointer());
    arguments.num_ids = num_ids;
    arguments.experts = from.experts;
    if (!from.expert_map.empty())
      arguments.expert_map = static_cast<const std::int32_t*>(map.pointer());
    arguments.foreign = from.foreign;
    arguments.block_m = from.block_m;
    arguments.sorted_ids = static_cast<std::int32_t*>(sorted.pointer());
    arguments.expert_ids = static_cast<std::int32_t*>(experts.pointer());
    arguments.num_tokens_padded = static_cast<std::int32_t*>(padded.pointer());
    arguments.capacity = capacity;
    arguments.workspace = scratch.pointer();
    arguments.workspace_bytes = workspace;
    arguments.programmatic_dependent_launch = true;  // also of the second launch behind the first
    CHORD_TRY(cuda::check(rig().driver->ctx_synchronize(), "wait for the uploads"));
    CHORD_TRY(rig().engine.launch(*kernels_, arguments, stream()));
    CHORD_TRY(rig().stream.synchronize());
    CHORD_TRY(const auto count, downloaded<std::int32_t>(padded, 1));
    Aligned result;
    CHORD_TRY(result.sorted_ids, downloaded<std::int32_t>(sorted, untouched.size()));
    CHORD_TRY(result.expert_ids, downloaded<std::int32_t>(experts, blocks));
    if (count[0] < 0 || count[0] > capacity)
      return Error{ErrorCode::internal, "alignment", fmt::format("{} padded ids", count[0]), ""};
    cut(result.sorted_ids, static_cast<std::size_t>(count[0]));
    cut(result.expert_ids, static_cast<std::size_t>(count[0] / from.block_m));
    return result;
  }

  // What lies behind the end was not written.
  static void cut(std::vector<std::int32_t>& values, std::size_t end) {
    EXPECT_TRUE(std::all_of(values.begin() + static_cast<std::ptrdiff_t>(end), values.end(),
                            [](std::int32_t value) { return value == kUntouched; }));
    values.resize(end);
  }

  void expect_aligned(const AlignCase& from, const std::string& what) {
    REQUIRE_VALUE(const Aligned found, align(from));
    const Aligned expected = align_on_host(from);
    EXPECT_EQ(found.sorted_ids.size(), expected.sorted_ids.size()) << what;
    EXPECT_TRUE(found == expected) << what;
  }

  std::optional<LayerKernels> kernels_;
};

std::vector<std::int32_t> random_ids(std::size_t count, int experts, unsigned seed,
                                     int absent_of_100 = 0) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> ids(count);
  for (std::int32_t& id : ids) {
    id = static_cast<std::int32_t>(generator() % static_cast<unsigned>(experts));
    if (static_cast<int>(generator() % 100) < absent_of_100) id = -1;
  }
  return ids;
}

TEST_F(GpuLayer, AlignmentOfEverySizeAndBlock) {
  for (const std::size_t count : {0, 1, 7, 160, 4095, 4096, 4097, 16384, 131072})
    for (const int experts : {1, 8, 48, 384, 385, 1024})
      for (const int block_m : {8, 24, 64, 256})
        expect_aligned(
            {random_ids(count, experts, static_cast<unsigned>(count + experts)), experts, block_m},
            fmt::format("{} ids, {} experts, block_m {}", count, experts, block_m));
}

TEST_F(GpuLayer, AlignmentOfAbsentTokensAndForeignExperts) {
  constexpr int kExperts = 384;
  std::vector<std::int32_t> rank_3(kExperts, -1);
  for (int i = 0; i < 48; ++i) rank_3[3 * 48 + i] = i;
  std::vector<std::int32_t> none(kExperts, -1);
  std::vector<std::int32_t> scattered(kExperts, -1);
  for (int i = 0; i < 48; ++i) scattered[(i * 97 + 5) % kExperts] = 47 - i;
  for (const std::size_t count : {160, 20000})
    for (const auto& map : {rank_3, none, scattered})
      for (const ForeignExperts foreign : {ForeignExperts::skip, ForeignExperts::mark})
        expect_aligned({random_ids(count, kExperts, 5, 10), kExperts, 16, map, foreign},
                       fmt::format("{} ids", count));
  // Every id absent, out of range, or of one expert.
  expect_aligned({std::vector<std::int32_t>(100, -1), 8, 16}, "all absent");
  expect_aligned({std::vector<std::int32_t>(100, 8), 8, 16}, "all beyond the experts");
  expect_aligned({std::vector<std::int32_t>(9000, 7), 8, 16}, "one busy expert");
}

TEST_F(GpuLayer, AlignmentRefusesWhatDoesNotFit) {
  AlignArguments arguments;
  arguments.num_ids = 160;
  arguments.experts = 48;
  arguments.block_m = 16;
  arguments.capacity = align_capacity(160, 48, 16) - 1;
  const Status refused = rig().engine.launch(*kernels_, arguments, stream());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("capacity"), std::string::npos);
}

struct GateCase {
  int experts = 384;
  int top_k = 8;
  Scoring scoring = Scoring::sigmoid;
  bool renormalise = true;
  bool has_bias = true;
  bool has_slot = false;
  LogitType type = LogitType::f32;

  int slots() const { return top_k + (has_slot ? 1 : 0); }
  std::string text() const {
    return fmt::format("{} experts, top {}, scoring {}, renormalise {}, bias {}, slot {}, type {}",
                       experts, top_k, static_cast<int>(scoring), renormalise, has_bias, has_slot,
                       static_cast<int>(type));
  }
};

constexpr std::int64_t kGateTokens = 33;
constexpr float kGateScale = 2.827f;

struct GateInput {
  std::vector<float> logits, bias;
};

// BF16 values, so that both types hold the same numbers; ties of two lanes and inside one.
GateInput gate_input(const GateCase& of) {
  std::mt19937 generator(static_cast<unsigned>(of.experts + of.top_k));
  std::normal_distribution<float> normal;
  GateInput input;
  input.logits.resize(static_cast<std::size_t>(kGateTokens * of.experts));
  for (float& logit : input.logits) logit = value_of(bf16_of(normal(generator)));
  if (of.has_bias) {
    input.bias.resize(static_cast<std::size_t>(of.experts));
    for (float& bias : input.bias) bias = 0.1f * normal(generator);
    if (of.experts > 33) input.bias[0] = input.bias[1] = input.bias[32] = 0.0f;
  }
  if (of.experts > 33) input.logits[0] = input.logits[1] = input.logits[32] = 9.0f;
  return input;
}

struct Route {
  std::vector<std::int32_t> ids;
  std::vector<double> weights;
};

// Sigmoid or softmax in FP64, chosen by score and bias, the lower index first.
Route gate_on_host(const GateCase& of, const GateInput& input, std::int64_t token) {
  const float* logits = input.logits.data() + token * of.experts;
  std::vector<double> scores(static_cast<std::size_t>(of.experts));
  const double largest = *std::max_element(logits, logits + of.experts);
  double sum = 0;
  for (int e = 0; e < of.experts; ++e) {
    scores[e] = of.scoring == Scoring::sigmoid ? 1 / (1 + std::exp(-double{logits[e]}))
                                               : std::exp(logits[e] - largest);
    sum += scores[e];
  }
  if (of.scoring == Scoring::softmax)
    for (double& score : scores) score /= sum;
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto biased = [&](std::int32_t e) { return scores[e] + (of.has_bias ? input.bias[e] : 0); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t x, std::int32_t y) { return biased(x) > biased(y); });
  Route route;
  double chosen = 0;
  for (int i = 0; i < of.top_k; ++i) chosen += scores[order[i]];
  for (int i = 0; i < of.top_k; ++i) {
    route.ids.push_back(order[i]);
    route.weights.push_back(scores[order[i]] / (of.renormalise ? chosen : 1) * kGateScale);
  }
  return route;
}

class GpuGate : public GpuLayer {
 protected:
  struct Found {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
  };
  Result<Found> run(const GateCase& of, const GateInput& input) {
    const std::int64_t tokens = static_cast<std::int64_t>(input.logits.size()) / of.experts;
    const auto count = static_cast<std::size_t>(tokens * of.slots());
    std::vector<std::uint16_t> halves;
    for (const float logit : input.logits) halves.push_back(bf16_of(logit));
    CHORD_TRY(const auto logits,
              of.type == LogitType::f32 ? uploaded(input.logits) : uploaded(halves));
    CHORD_TRY(const auto bias, uploaded(input.bias));
    CHORD_TRY(const auto ids, uploaded(std::vector<std::int32_t>(count, kUntouched)));
    CHORD_TRY(const auto weights, uploaded(std::vector<float>(count, -1.0f)));
    GateArguments a;
    a.logits = logits.pointer();
    a.logit_type = of.type;
    if (of.has_bias) a.correction_bias = static_cast<const float*>(bias.pointer());
    a.tokens = tokens;
    a.experts = of.experts;
    a.top_k = of.top_k;
    a.scoring = of.scoring;
    a.renormalise = of.renormalise;
    a.scale = kGateScale;
    a.shared_slot = of.has_slot;
    a.ids = static_cast<std::int32_t*>(ids.pointer());
    a.weights = static_cast<float*>(weights.pointer());
    CHORD_TRY(cuda::check(rig().driver->ctx_synchronize(), "wait for the uploads"));
    CHORD_TRY(rig().engine.launch(*kernels_, a, stream()));
    CHORD_TRY(rig().stream.synchronize());
    Found found;
    CHORD_TRY(found.ids, downloaded<std::int32_t>(ids, count));
    CHORD_TRY(found.weights, downloaded<float>(weights, count));
    return found;
  }

  void expect_right(const GateCase& of) {
    const GateInput input = gate_input(of);
    REQUIRE_VALUE(const Found found, run(of, input));
    for (std::int64_t token = 0; token < kGateTokens; ++token) {
      const Route expected = gate_on_host(of, input, token);
      const auto first = static_cast<std::size_t>(token * of.slots());
      for (int i = 0; i < of.top_k; ++i) {
        EXPECT_EQ(found.ids[first + i], expected.ids[i]) << of.text() << ", token " << token;
        EXPECT_NEAR(found.weights[first + i], expected.weights[i], 3e-5) << of.text();
      }
      if (!of.has_slot) continue;
      EXPECT_EQ(found.ids[first + of.top_k], of.experts) << of.text();
      EXPECT_EQ(found.weights[first + of.top_k], 1.0f) << of.text();
    }
  }
};

TEST_F(GpuGate, ChoosesAndWeighsAsFp64Does) {
  for (const int experts : {1, 8, 64, 384, 1000, 1024})
    for (const Scoring scoring : {Scoring::sigmoid, Scoring::softmax})
      for (const bool renormalise : {false, true})
        expect_right({experts, std::min(8, experts), scoring, renormalise});
  for (const int top_k : {1, 32}) expect_right({.top_k = top_k});
  expect_right({.has_bias = false});
  expect_right({.has_slot = true});
  expect_right({.top_k = 32, .has_slot = true});
  expect_right({.type = LogitType::bf16});
}

TEST_F(GpuGate, LogitsThatAreNoNumbersComeLastAndStillNameDifferentExperts) {
  GateInput input{std::vector<float>(40, NAN), {}};
  REQUIRE_VALUE(const Found none, run({.experts = 40, .top_k = 4, .has_bias = false}, input));
  EXPECT_EQ(none.ids, (std::vector<std::int32_t>{0, 1, 2, 3}));
  input.logits[37] = -5.0f;
  input.logits[5] = 1.0f;
  REQUIRE_VALUE(const Found some, run({.experts = 40, .top_k = 4, .has_bias = false}, input));
  EXPECT_EQ(some.ids, (std::vector<std::int32_t>{5, 37, 0, 1}));
}

TEST_F(GpuLayer, SwigluAndSumOfCountedRowsOnly) {
  constexpr int kTokens = 29, kSlots = 9, kExperts = 16, kColumns = 264;
  constexpr std::size_t kRows = kTokens * kSlots;
  std::vector<std::int32_t> map(kExperts, -1);
  for (int e = 0; e < kExperts; e += 2) map[e] = e / 2;
  std::vector<std::int32_t> ids = random_ids(kRows, kExperts, 11, 10);
  std::fill_n(ids.begin(), kSlots, -1);  // nothing of token 0 counts
  const auto counts = [&](std::size_t row) { return ids[row] >= 0 && map[ids[row]] >= 0; };
  std::vector<std::uint16_t> gate_up = random_bf16(kRows * 2 * kColumns, 3);
  for (std::size_t row = 0; row < kRows; ++row)
    if (!counts(row))
      std::fill_n(gate_up.begin() + row * 2 * kColumns, 2 * kColumns, std::uint16_t{0x7fc0});
  std::vector<float> weights(kRows);
  for (std::size_t i = 0; i < kRows; ++i) weights[i] = 0.1f + 0.01f * static_cast<float>(i % 50);
  REQUIRE_VALUE(const auto device_ids, uploaded(ids));
  REQUIRE_VALUE(const auto device_map, uploaded(map));
  REQUIRE_VALUE(const auto device_gate_up, uploaded(gate_up));
  REQUIRE_VALUE(const auto device_weights, uploaded(weights));
  REQUIRE_VALUE(const auto middle, uploaded(std::vector<std::uint16_t>(kRows * kColumns, 0x7fc0)));
  REQUIRE_VALUE(const auto output,
                uploaded(std::vector<std::uint16_t>(kTokens * kColumns, bench::kPoison)));
  const RowFilter filter{static_cast<const std::int32_t*>(device_ids.pointer()),
                         static_cast<const std::int32_t*>(device_map.pointer()), kExperts};
  SwigluArguments swiglu{device_gate_up.pointer(), middle.pointer(), kRows, kColumns, filter};
  CombineArguments sum{middle.pointer(),
                       static_cast<const float*>(device_weights.pointer()),
                       output.pointer(),
                       kTokens,
                       kSlots,
                       kColumns,
                       filter};
  REQUIRE_OK(cuda::check(rig().driver->ctx_synchronize(), "wait for the uploads"));
  REQUIRE_OK(rig().engine.launch(*kernels_, swiglu, stream()));
  REQUIRE_OK(rig().engine.launch(*kernels_, sum, stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const auto halves, downloaded<std::uint16_t>(middle, kRows * kColumns));
  REQUIRE_VALUE(const auto sums, downloaded<std::uint16_t>(output, kTokens * kColumns));
  for (std::size_t row = 0; row < kRows; ++row)
    for (int j = 0; j < kColumns; ++j) {
      const std::uint16_t found = halves[row * kColumns + j];
      if (!counts(row)) {
        ASSERT_EQ(found, 0x7fc0) << "row " << row;
        continue;
      }
      const double gate = value_of(gate_up[row * 2 * kColumns + j]);
      const double expected =
          gate / (1 + std::exp(-gate)) * value_of(gate_up[row * 2 * kColumns + kColumns + j]);
      ASSERT_NEAR(value_of(found), expected, std::abs(expected) / 250 + 1e-6) << "row " << row;
    }
  for (int token = 0; token < kTokens; ++token)
    for (int j = 0; j < kColumns; ++j) {
      double expected = 0, size = 0;
      for (int slot = 0; slot < kSlots; ++slot) {
        const std::size_t row = static_cast<std::size_t>(token) * kSlots + slot;
        if (!counts(row)) continue;
        const double part = weights[row] * value_of(halves[row * kColumns + j]);
        expected += part;
        size += std::abs(part);
      }
      ASSERT_NEAR(value_of(sums[token * kColumns + j]), expected, size / 250 + 1e-6);
    }
}

}  // namespace
}  // namespace chord::gpu_test
