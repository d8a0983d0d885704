// The face of the library on a machine without a GPU: everything but prepare and launch.
#include "chord/engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cache/manifest.h"
#include "chord/model.h"
#include "src/cuda/driver_api.h"
#include "tests/support/log_recorder.h"
#include "tests/support/temporary_folder.h"

namespace chord {
namespace {

class EngineTest : public ::testing::Test {
 protected:
  Options options() {
    Options options;
    options.cache_dir = folder_ / "cache";
    options.log = log_.sink();
    return options;
  }
  Engine engine() {
    auto engine = Engine::create(options());
    EXPECT_TRUE(engine.ok()) << engine.error().message();
    return std::move(*engine);
  }

  static GemmDescriptor decode() {
    GemmDescriptor descriptor;
    descriptor.profile = "h200_decode_ep8";
    descriptor.n = 4096;
    descriptor.k = 7168;
    descriptor.experts = 48;
    descriptor.rows = 160;
    return descriptor;
  }

  chord::testing::TemporaryFolder folder_;
  chord::testing::LogRecorder log_;
};

TEST_F(EngineTest, PlansAndExplainsWithoutGpuCompilerOrCache) {
  const Engine engine = this->engine();
  const auto explanation = engine.explain(decode());
  ASSERT_TRUE(explanation.ok()) << explanation.error().message();
  EXPECT_EQ(explanation->decision.schedule.block_m, 8);
  EXPECT_FALSE(explanation->cached);
  EXPECT_FALSE(explanation->key.has_value());
  EXPECT_NE(explanation->key_missing, "");
  EXPECT_FALSE(explanation->decision.reasons.empty());
  EXPECT_GT(explanation->memory_floor_us, 0);
  EXPECT_EQ(explanation->shared_bytes, abi::shared_bytes(explanation->decision.kernel));
}

TEST_F(EngineTest, ALayerSharesOneBlockM) {
  const Engine engine = this->engine();
  auto layer = shard_layer(*builtin_model("kimi-k2.5"), {.axis = ShardAxis::expert, .ways = 8});
  ASSERT_TRUE(layer.ok());
  for (const int rows : {1, 160, 400, 5000}) {
    layer->rows = rows;
    layer->role = rows < 1000 ? Role::decode : Role::prefill;
    const auto plan = engine.plan_layer(*layer);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    EXPECT_EQ(plan->gate_up.kernel.block_m, plan->block_m);
    EXPECT_EQ(plan->down.kernel.block_m, plan->block_m);
  }
}

TEST_F(EngineTest, ATableCoversEveryRowWithoutAHole) {
  const Engine engine = this->engine();
  const auto table = engine.schedule_table(decode());
  ASSERT_TRUE(table.ok()) << table.error().message();
  std::int64_t at = 0;
  for (const TableRow& row : table->rows) {
    EXPECT_EQ(row.min_rows, at);
    EXPECT_GT(row.max_rows, row.min_rows);
    at = row.max_rows;
  }
  EXPECT_EQ(at, kMaxTableRows);
  GemmDescriptor one = decode();
  for (const std::int64_t rows : {1, 160, 259, 260, 561, 562, 100000}) {
    one.rows = rows;
    EXPECT_EQ(table->at(rows).schedule, engine.plan(one)->schedule) << rows;
  }
}

TEST_F(EngineTest, PrepareWithoutADriverIsAnErrorThatSaysSo) {
  if (cuda::driver_api().ok()) GTEST_SKIP() << "this machine has a driver";
  Engine engine = this->engine();
  const auto prepared = engine.prepare(decode());
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().code, ErrorCode::unavailable);
  EXPECT_NE(prepared.error().message().find("libcuda"), std::string::npos);
}

TEST_F(EngineTest, SourceWritesEveryFieldOfTheSchedule) {
  const Engine engine = this->engine();
  const auto source = engine.source(*engine.plan(decode()));
  ASSERT_TRUE(source.ok());
  for (const char* text : {".mainloop = Mainloop::mma", ".block_m = 8", ".tile_n = 512",
                           ".dequantisation = Dequantisation::fused", ".n = 4096", ".k = 7168",
                           ".routing = RoutingKind::indexed", "chord_kernel"})
    EXPECT_NE(source->find(text), std::string::npos) << text;
}

TEST_F(EngineTest, AnEditedDecisionThatCanNotRunIsRefused) {
  const Engine engine = this->engine();
  Decision decision = *engine.plan(decode());
  decision.kernel.stages = 8;
  decision.kernel.slices_per_stage = 4;
  EXPECT_FALSE(engine.source(decision).ok());
}

TEST_F(EngineTest, OptionsFromCodeWinOverTheEnvironment) {
  setenv("CHORD_JIT", "warn", 1);
  setenv("CHORD_LOG", "error", 1);
  Options options = this->options();
  options.jit = JitPolicy::never;
  const auto engine = Engine::create(options);
  unsetenv("CHORD_JIT");
  unsetenv("CHORD_LOG");
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ(engine->options().jit, JitPolicy::never);
  EXPECT_EQ(engine->options().log_level, LogLevel::error);
}

TEST_F(EngineTest, TheEnvironmentIsReadOnceAtTheDoor) {
  const Engine engine = this->engine();
  setenv("CHORD_W4A16_BM", "64", 1);
  const auto decision = engine.plan(decode());
  unsetenv("CHORD_W4A16_BM");
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->schedule.block_m, 8);
}

TEST_F(EngineTest, AMalformedVariableIsAnErrorThatNamesIt) {
  for (const auto& [variable, value] :
       {std::pair{"CHORD_W4A16_BM", "abc"}, std::pair{"CHORD_W4A16_BM", ""},
        std::pair{"CHORD_W4A16_BM", "12"}, std::pair{"CHORD_JIT", "maybe"},
        std::pair{"CHORD_LOG", "loud"}}) {
    setenv(variable, value, 1);
    const auto engine = Engine::create(options());
    unsetenv(variable);
    ASSERT_FALSE(engine.ok()) << variable << "=" << value;
    EXPECT_NE(engine.error().message().find(variable), std::string::npos)
        << engine.error().message();
  }
}

TEST_F(EngineTest, PrewarmMakesWhatASecondEngineFindsWithoutACompiler) {
  Deployment deployment;
  deployment.model = *builtin_model("kimi-k2.5");
  deployment.shard = {.axis = ShardAxis::expert, .ways = 8};
  deployment.max_rows = 100;
  std::int64_t keys = 0;
  {
    Engine engine = this->engine();
    const auto report = engine.prewarm(deployment);
    ASSERT_TRUE(report.ok()) << report.error().message();
    if (report->failed == report->keys)
      GTEST_SKIP() << "no NVRTC here: " << report->missing.front().reason;
    EXPECT_EQ(report->failed, 0);
    EXPECT_EQ(report->compiles, report->keys);
    EXPECT_TRUE(report->missing.empty());
    keys = report->keys;
  }
  Options blind = options();
  blind.nvrtc_library = "/nonexistent/libnvrtc.so.13";
  auto engine = Engine::create(blind);
  ASSERT_TRUE(engine.ok());
  const auto checked = engine->prewarm(deployment, {.check = true});
  ASSERT_TRUE(checked.ok()) << checked.error().message();
  EXPECT_EQ(checked->hits, keys);
  GemmDescriptor descriptor = decode();
  descriptor.rows = 100;
  const auto explanation = engine->explain(descriptor);
  ASSERT_TRUE(explanation.ok());
  EXPECT_TRUE(explanation->cached);
  ASSERT_TRUE(explanation->facts.has_value());
  EXPECT_EQ(explanation->facts->local_bytes, 0);
  EXPECT_GT(explanation->facts->registers, 0);

  deployment.max_rows = kMaxTableRows;
  const auto partial = engine->prewarm(deployment);
  ASSERT_TRUE(partial.ok());
  EXPECT_GT(partial->failed, 0) << "new keys without a compiler fail";
  EXPECT_NE(partial->missing.front().reason.find("/nonexistent"), std::string::npos);
}

// --- the cache as a service

TEST_F(EngineTest, AManifestThatTheCacheLacksIsFoundOutWhenTheEngineIsCreated) {
  cache::Manifest manifest{.label = "kimi"};
  manifest.keys.push_back({std::string(32, 'a'), "sm_90a indexed 4096x7168", "sm_90a", "", 0});
  const std::string path = folder_ / "kimi.json";
  std::ofstream(path) << to_json(manifest);
  Options strict = options();
  strict.manifest = path;
  strict.jit = JitPolicy::never;
  const auto refused = Engine::create(strict);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::cache_miss);
  EXPECT_NE(refused.error().message().find("1 of its 1 kernels"), std::string::npos);
  EXPECT_NE(refused.error().message().find("sm_90a indexed 4096x7168"), std::string::npos);
  strict.jit = JitPolicy::warn;
  EXPECT_TRUE(Engine::create(strict).ok());
  EXPECT_EQ(log_.warnings().size(), 1u);
  strict.manifest = folder_ / "none.json";
  EXPECT_TRUE(Engine::create(strict).ok()) << "under warn nothing of the cache is an error";
  strict.jit = JitPolicy::never;
  EXPECT_FALSE(Engine::create(strict).ok());
}

TEST_F(EngineTest, WhySaysWhatEveryTierHas) {
  const Engine engine = this->engine();
  const auto plan = engine.plan(decode());
  ASSERT_TRUE(plan.ok());
  const auto unknown = engine.why(*plan);
  ASSERT_TRUE(unknown.ok());
  EXPECT_FALSE(unknown->is_there());
  EXPECT_NE(unknown->key_missing, "");
  const auto by_key = engine.why(std::string(32, 'a'));
  ASSERT_TRUE(by_key.ok());
  ASSERT_EQ(by_key->tiers.size(), 1u);
  EXPECT_EQ(by_key->tiers[0].reason, MissReason::absent);
  EXPECT_FALSE(engine.why("not a key").ok());
}

TEST_F(EngineTest, WrongSettingsOfTheFleetAreErrorsAndSecretsStayOut) {
  const auto error_of = [&](auto change) {
    Options wrong = options();
    change(wrong);
    const auto engine = Engine::create(std::move(wrong));
    return engine.ok() ? std::string("accepted") : engine.error().message();
  };
  EXPECT_NE(error_of([](Options& o) { o.trusted_keys = "/no/such"; }).find("/no/such"),
            std::string::npos);
  EXPECT_NE(error_of([](Options& o) { o.signing_key = "/no/such"; }).find("/no/such"),
            std::string::npos);
  EXPECT_NE(error_of([](Options& o) { o.compile_at = CompileAt::farm; }).find("CHORD_REMOTE"),
            std::string::npos);
  const std::string remote = error_of([](Options& o) { o.remote = "ftp://u:s3cret@host"; });
  EXPECT_NE(remote, "accepted");
  EXPECT_EQ(remote.find("s3cret"), std::string::npos) << remote;
}

#if CHORD_HAS_REMOTE

TEST_F(EngineTest, AStoreThatIsNotThereStopsNothing) {
  Options away = options();
  away.remote = "redis://127.0.0.1:1";
  const auto engine = Engine::create(away);
  ASSERT_TRUE(engine.ok()) << engine.error().message();
  const auto explanation = engine->explain(decode());
  EXPECT_TRUE(explanation.ok());
  EXPECT_TRUE(log_.has(LogLevel::warn, "CHORD_TRUSTED_KEYS"));
  EXPECT_EQ(engine->counters().remotes.size(), 1u);
  const auto why = engine->why(std::string(32, 'a'));
  ASSERT_TRUE(why.ok());
  EXPECT_EQ(why->tiers.back().reason, MissReason::failed);
}

#else

TEST_F(EngineTest, ARemoteStoreIsRefusedByABuildWithoutOne) {
  Options away = options();
  away.remote = "redis://127.0.0.1:1";
  const auto engine = Engine::create(away);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message().find("CHORD_REMOTE=ON"), std::string::npos);
}

#endif

}  // namespace
}  // namespace chord
