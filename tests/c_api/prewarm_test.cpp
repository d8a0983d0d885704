// A deployment of a few small kernels, made through the C face without a GPU.
#include <filesystem>
#include <vector>

#include "src/cuda/nvrtc_api.h"
#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

struct Step {
  std::int64_t done, total;
  std::string key, label;
  bool hit, failed;
};

void take_step(const chord_prewarm_progress_t* p, void* user) {
  static_cast<std::vector<Step>*>(user)->push_back(
      {p->done, p->total, p->key, p->label, p->hit == 1, p->failed == 1});
}

class PrewarmTest : public CApiTest {
 protected:
  void SetUp() override {
    CApiTest::SetUp();
    deployment_.model = &model_;
    deployment_.shard_ways = 4;
    deployment_.max_rows = 1;
    options_.progress = take_step;
    options_.progress_user = &steps_;
    options_.jobs = 2;
  }

  // Of the same deployment through the C++ face.
  static std::int64_t keys_in_cpp(Engine engine) {
    Deployment deployment;
    deployment.model = {.model = "small",
                        .hidden_size = 128,
                        .moe_intermediate_size = 64,
                        .n_routed_experts = 4,
                        .num_experts_per_tok = 1,
                        .n_shared_experts = 0,
                        .num_hidden_layers = 1,
                        .first_k_dense_replace = 0};
    deployment.shard.ways = 4;
    deployment.max_rows = 1;
    return engine.prewarm(deployment, {.dry_run = true})->keys;
  }

  chord_report_info_t prewarm(OwnedReport& report) {
    steps_.clear();
    chord_report_info_t info = chord_report_info_init();
    EXPECT_SUCCESS(chord_prewarm(handle_, &deployment_, &options_, report.out()));
    EXPECT_SUCCESS(chord_report_get_info(report, &info));
    return info;
  }

  chord_model_t model_ = small_model();
  chord_deployment_t deployment_ = chord_deployment_init();
  chord_prewarm_options_t options_ = chord_prewarm_options_init();
  std::vector<Step> steps_;
};

TEST_F(PrewarmTest, ADryRunCountsAndNamesWhatIsMissing) {
  options_.dry_run = 1;
  OwnedReport report;
  const chord_report_info_t info = prewarm(report);
  EXPECT_EQ(info.keys, keys_in_cpp(engine()));
  EXPECT_EQ(info.present, 0);
  ASSERT_EQ(info.missing, info.keys);
  chord_missing_t missing = chord_missing_init();
  REQUIRE_SUCCESS(chord_report_get_missing(report, 0, &missing));
  EXPECT_TRUE(contains(missing.label, "sm_90a")) << missing.label;
  EXPECT_STREQ(missing.reason, "not in the cache");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(PrewarmTest, AnIndexBehindTheMissingIsRefused) {
  options_.dry_run = 1;
  OwnedReport report;
  const std::int64_t behind = prewarm(report).missing;
  chord_missing_t missing = chord_missing_init();
  for (const std::int64_t index : {std::int64_t{-1}, behind}) {
    EXPECT_EQ(chord_report_get_missing(report, index, &missing), CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, "`index` is " + std::to_string(index)));
  }
}

TEST_F(PrewarmTest, CompilesOnceAndCountsIt) {
  if (!cuda::open_nvrtc(std::nullopt).ok()) GTEST_SKIP() << "no NVRTC on this machine";
  OwnedReport first;
  chord_report_info_t info = prewarm(first);
  const std::int64_t keys = info.keys;
  EXPECT_GE(keys, 3);  // both projections and the packer
  EXPECT_EQ(info.compiles, keys);
  EXPECT_EQ(info.present, keys);
  EXPECT_EQ(info.failed, 0);
  EXPECT_EQ(info.missing, 0);
  EXPECT_GT(info.seconds, 0);
  EXPECT_TRUE(std::filesystem::exists(info.manifest)) << info.manifest;
  ASSERT_EQ(steps_.size(), static_cast<std::size_t>(keys));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    EXPECT_EQ(steps_[i].done, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(steps_[i].total, keys);
    EXPECT_FALSE(steps_[i].hit || steps_[i].failed);
    EXPECT_NE(steps_[i].key, "");
  }
  chord_cache_counters_t counters = chord_cache_counters_init();
  REQUIRE_SUCCESS(chord_cache_get_counters(handle_, &counters));
  EXPECT_EQ(counters.compiles, static_cast<std::uint64_t>(keys));
  EXPECT_GT(counters.bytes_written, 0u);

  OwnedReport second;
  info = prewarm(second);
  EXPECT_EQ(info.hits, keys);
  EXPECT_EQ(info.compiles, 0);
  for (const Step& step : steps_) EXPECT_TRUE(step.hit);
}

TEST_F(PrewarmTest, NeedsNoOptionsAndCountsWhatCouldNotBeMade) {
  const std::string cache = folder_ / "other";
  chord_options_t options = chord_options_init();
  options.cache_dir = cache.c_str();
  options.jit = CHORD_JIT_NEVER;
  OwnedHandle handle;
  REQUIRE_SUCCESS(chord_create(&options, handle.out()));
  OwnedReport report;
  REQUIRE_SUCCESS(chord_prewarm(handle, &deployment_, nullptr, report.out()));
  chord_report_info_t info = chord_report_info_init();
  REQUIRE_SUCCESS(chord_report_get_info(report, &info));
  EXPECT_GT(info.keys, 0);
  EXPECT_EQ(info.failed, info.keys);
  EXPECT_EQ(info.missing, info.keys);
}

TEST_F(PrewarmTest, EveryListOfTheDeploymentIsRead) {
  const chord_arch_t archs[] = {CHORD_ARCH_SM_90A, CHORD_ARCH_SM_103A};
  const chord_family_t families[] = {CHORD_FAMILY_GROUPED_CONTIGUOUS, CHORD_FAMILY_GROUPED_MASKED};
  const chord_role_t roles[] = {CHORD_ROLE_PREFILL};
  deployment_.archs = archs;
  deployment_.arch_count = 2;
  deployment_.families = families;
  deployment_.family_count = 2;
  deployment_.roles = roles;
  deployment_.role_count = 1;
  options_.dry_run = 1;
  OwnedReport one, all;
  const std::int64_t beside = keys_in_cpp(engine()) - 2;  // kernels that are no GEMM
  deployment_.arch_count = 1;
  deployment_.family_count = 1;
  EXPECT_EQ(prewarm(one).keys, 2 + beside);
  deployment_.arch_count = 2;
  deployment_.family_count = 2;
  EXPECT_EQ(prewarm(all).keys, 2 * (2 * 2 + beside));
}

TEST_F(PrewarmTest, AnEntryOfAListThatIsNoneIsRefusedByItsIndex) {
  chord_role_t roles[] = {CHORD_ROLE_DECODE, CHORD_ROLE_NONE};
  deployment_.roles = roles;
  deployment_.role_count = 2;
  OwnedReport report;
  EXPECT_EQ(chord_prewarm(handle_, &deployment_, &options_, report.out()),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`deployment.roles[1]` is 0"));
}

TEST_F(PrewarmTest, EpiloguesArrive) {
  options_.dry_run = 1;
  OwnedReport report;
  deployment_.gate_up_epilogue = CHORD_EPILOGUE_WEIGHTED;
  EXPECT_EQ(chord_prewarm(handle_, &deployment_, &options_, report.out()),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "gate_up_epilogue is weighted"));
  deployment_.gate_up_epilogue = CHORD_EPILOGUE_NONE;
  deployment_.down_epilogue = CHORD_EPILOGUE_SWIGLU;
  EXPECT_EQ(chord_prewarm(handle_, &deployment_, &options_, report.out()),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "down_epilogue is swiglu"));
}

TEST_F(PrewarmTest, SwitchesAreZeroOrOne) {
  options_.check = 2;
  OwnedReport report;
  EXPECT_EQ(chord_prewarm(handle_, &deployment_, &options_, report.out()),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`options.check` is 2"));
}

TEST_F(PrewarmTest, RowsThatCanNotBeAreRefusedByTheCore) {
  deployment_.min_rows = 5;
  OwnedReport report;
  EXPECT_EQ(chord_prewarm(handle_, &deployment_, &options_, report.out()),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "rows 5..1")) << chord_last_error()->message;
}

TEST_F(CApiTest, MetricsAreThoseOfTheCppFace) {
  std::size_t needed = 0;
  REQUIRE_SUCCESS(chord_cache_metrics(handle_, nullptr, 0, &needed));
  std::string text(needed, '?');
  REQUIRE_SUCCESS(chord_cache_metrics(handle_, text.data(), text.size(), &needed));
  EXPECT_EQ(text.c_str(), prometheus_text(engine().counters()));
}

}  // namespace
}  // namespace chord::c_api_test
