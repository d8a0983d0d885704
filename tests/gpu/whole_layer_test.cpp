// The whole layer of tools/examples: captured before anything of it has been launched, replayed,
// and right against the FP64 reference, for every rank, form and alignment.
#include <fmt/format.h>

#include "tests/gpu/fixture.h"
#include "tests/support/temporary_folder.h"
#include "tools/examples/kimi_checkpoint.h"
#include "tools/examples/layer_session.h"
#include "tools/examples/synthetic_checkpoint.h"

namespace chord::gpu_test {
namespace {

using namespace examples;

struct LayerCase {
  std::int64_t tokens = 16;
  ShardChoice choice = {};
  Fused fused = Fused::both;
  std::optional<int> block_m = std::nullopt;
  bool programmatic_dependent_launch = false;
};

const SyntheticOptions kTiny{.hidden = 256, .intermediate = 128, .experts = 16, .top_k = 4};

const std::vector<LayerCase>& cases() {
  static const std::vector<LayerCase> all = [] {
    std::vector<LayerCase> made;
    for (const Fused fused : {Fused::none, Fused::swiglu, Fused::weighted, Fused::both})
      made.push_back({.fused = fused});
    for (const std::int64_t tokens : {1, 3, 200, 2000}) made.push_back({.tokens = tokens});
    for (const int block_m : {8, 16, 32, 48, 64, 128})
      made.push_back({.tokens = 64, .block_m = block_m});
    for (const int rank : {0, 3}) {
      made.push_back({.tokens = 33, .choice = {.shard = {ShardAxis::expert, 4}, .rank = rank}});
      made.push_back(
          {.tokens = 5,
           .choice = {.shard = {ShardAxis::expert, 16}, .rank = rank, .shared_slot = true}});
    }
    made.push_back({.tokens = 33, .choice = {.shard = {ShardAxis::tensor, 2}, .rank = 1}});
    made.push_back({.tokens = 33, .choice = {.shared_slot = true}});
    made.push_back({.tokens = 33, .programmatic_dependent_launch = true});
    return made;
  }();
  return all;
}

std::string label(const LayerCase& one) {
  return fmt::format("{} tokens, rank {} of {} {}{}, fused {}, block_m {}{}", one.tokens,
                     one.choice.rank, chord::name(one.choice.shard.axis), one.choice.shard.ways,
                     one.choice.shared_slot ? " with a shared slot" : "", examples::name(one.fused),
                     one.block_m.value_or(0), one.programmatic_dependent_launch ? ", pdl" : "");
}

Result<SessionOptions> session_of(const LayerCase& one) {
  SessionOptions options;
  CHORD_TRY(const MoeConfig config, synthetic_config(kTiny));
  CHORD_TRY(options.question.shape, shard_shape(config, one.choice));
  options.question.choice = one.choice;
  options.question.top_k = config.routing.top_k;
  options.question.tokens = one.tokens;
  options.question.block_m = one.block_m;
  options.rule = config.routing;
  options.fused = one.fused;
  options.programmatic_dependent_launch = one.programmatic_dependent_launch;
  options.iterations = 1;
  return options;
}

const bool kRegistered = register_kernels([](const Engine& engine, Architecture arch) -> Decisions {
  std::vector<Decision> decisions;
  for (const LayerCase& one : cases()) {
    CHORD_TRY(SessionOptions options, session_of(one));
    options.question.arch = arch;
    for (const Fused fused : {Fused::none, one.fused}) {
      CHORD_TRY(const LayerPlan plan, engine.plan_layer(describe(options.question, fused)));
      decisions.push_back(plan.gate_up);
      decisions.push_back(plan.down);
    }
  }
  return decisions;
});

class GpuWholeLayer : public GpuTest {
 protected:
  void expect_right(const LayerSource& source, const LayerCase& one) {
    REQUIRE_VALUE(const SessionOptions options, session_of(one));
    REQUIRE_VALUE(const SessionReport report, run_session(rig(), source, options));
    for (const ForwardReport& forward : report.forwards) {
      EXPECT_TRUE(forward.same_bits) << label(one);
      EXPECT_TRUE(is_within_limits(forward.error))
          << label(one) << ", in the form " << examples::name(forward.fused) << ": relative L2 "
          << forward.error.rel_l2 << ", worst row " << forward.error.worst_row_l2 << " (token "
          << forward.error.worst_row << ")";
    }
    EXPECT_EQ(report.forwards.size(), one.fused == Fused::none ? 1u : 2u);
    EXPECT_LE(report.load.staging_bytes, 256 * 256 * 9 / 16 + 8);
  }
};

TEST_F(GpuWholeLayer, IsRightForEveryRankFormAndAlignment) {
  for (const LayerCase& one : cases()) {
    REQUIRE_VALUE(const auto source, SyntheticLayer::make(kTiny, 1, one.choice));
    expect_right(*source, one);
  }
}

TEST_F(GpuWholeLayer, IsRightFromAFolderOfShards) {
  const testing::TemporaryFolder folder;
  REQUIRE_OK(write_synthetic_checkpoint(folder.path(), kTiny));
  REQUIRE_VALUE(const Checkpoint checkpoint, Checkpoint::open(folder.path()));
  REQUIRE_VALUE(const MoeConfig config, read_checkpoint_config(checkpoint));
  const LayerCase one{.choice = {.shard = {ShardAxis::expert, 4}, .rank = 2}};
  REQUIRE_VALUE(const auto source, KimiLayer::open(checkpoint, config, 1, one.choice));
  expect_right(*source, one);
}

// Packing names the expert whose scale can not be packed.
TEST_F(GpuWholeLayer, NamesTheExpertThatCanNotBePacked) {
  class Broken final : public LayerSource {
   public:
    explicit Broken(const LayerSource& whole) : LayerSource(whole.shape()), whole_(whole) {}
    Result<Router> router() const override { return whole_.router(); }

   private:
    Status read(std::int64_t slot, Projection projection, const Part& part, std::uint32_t* words,
                std::uint16_t* scales) const override {
      std::fill_n(words, part.rows * part.columns / 8, 0x88888888u);
      std::fill_n(scales, part.rows * part.columns / 32, std::uint16_t{0x3f80});
      if (slot == 11 && projection == Projection::down) scales[5] = 0x7f80;
      return {};
    }
    const LayerSource& whole_;
  };
  REQUIRE_VALUE(const auto whole, SyntheticLayer::make(kTiny, 1, {}));
  const auto loaded = LayerWeights::load(rig(), Broken(*whole), {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message().find("expert slot 11"), std::string::npos)
      << loaded.error().message();
}

}  // namespace
}  // namespace chord::gpu_test
