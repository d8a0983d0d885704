// chord-bench where there is no GPU: its flags, its cases, and what it does with results. The data
// and judgement that the GPU tests share with it are tested here too, as far as they are pure.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "src/cuda/device.h"
#include "tests/tools/process.h"
#include "tools/bench/results.h"

namespace chord::tools_test {
namespace {

using bench::BenchCase;
using bench::Comparison;
using bench::OwnedRow;
using bench::RowError;

Outcome run_bench(const std::string& arguments) {
  return run_tool("chord-bench", words(arguments));
}

bool has_gpu() { return cuda::retain_primary_context(0).ok(); }

TEST(BenchTool, WithoutAGpuSaysSoAndFails) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  const Outcome text = run_bench("--cases e12");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.out, "");
  EXPECT_EQ(text.err.rfind("error: ", 0), 0u) << text.err;
  const Outcome json = run_bench("--cases e12 --json");
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(json.json()["error"]["code"], "unavailable");
}

TEST(BenchTool, RefusesWrongFlagsBeforeItLooksForAGpu) {
  const ScratchFolder scratch;
  write_file(scratch.path("broken.json"), "{\"rows\": 3}");
  const std::string broken = scratch.path("broken.json"), fresh = scratch.path("new.json");
  for (const std::string& arguments :
       {std::string("--nonsense"), std::string("--flush never"), std::string("--policy best"),
        std::string("--set nosuch"), std::string("--iterations 0"), std::string("--iterations x"),
        std::string("--cases nosuchcase"), std::string("--kernel-fields nosuch=1"),
        std::string("--kernel-fields stages"), std::string("--kernel-fields stages=x"),
        "--merge " + broken, "--merge " + fresh + " --check-only",
        "--merge " + fresh + " --kernel-fields stages=2",
        "--merge " + fresh + " --complete --flush read"}) {
    const Outcome outcome = run_bench(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find("\nfound: "), std::string::npos) << arguments << outcome.err;
  }
  EXPECT_NE(run_program("/bin/ls", {fresh}).exit_code, 0) << "a refused run wrote its file";
}

TEST(BenchTool, ListsTheChosenCases) {
  const Outcome outcome = run_bench("--list --json --cases e12");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(outcome.json()["cases"].size(), 4u);
  EXPECT_EQ(run_bench("--list --json --set all").json()["cases"].size(),
            bench::embedded_cases()->size());
}

TEST(GpuCheckScript, RefusesWrongFlags) {
  const std::string script = CHORD_SOURCE_DIR "/tools/gpu_check.sh";
  for (const char* arguments :
       {"", "nonsense", "build extra", "sanitize extra", "profile extra", "ablation extra"}) {
    const Outcome outcome = run_program(script, words(arguments));
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.err.find("error: "), std::string::npos) << arguments;
  }
  EXPECT_EQ(run_program(script, {"--help"}).exit_code, 0);
}

// The 42 rows of the published tables that one H200 can run.
TEST(BenchCases, HoldEveryPublishedRowOnce) {
  const auto cases = bench::embedded_cases();
  ASSERT_TRUE(cases.ok()) << cases.error().message();
  std::set<std::string> labels;
  int published = 0;
  for (const BenchCase& one : *cases) {
    EXPECT_TRUE(labels.insert(one.label()).second) << one.label();
    published += one.chord_us && one.draw != "drawn" && one.runs_on(Architecture::sm_90a) ? 1 : 0;
  }
  EXPECT_EQ(published, 42);
}

TEST(BenchCases, CountsAreWhatTheDrawGives) {
  const auto cases = bench::embedded_cases();
  ASSERT_TRUE(cases.ok());
  for (const BenchCase& one : *cases) {
    const bench::Routing routing = bench::routing_of(one, 8);
    EXPECT_EQ(routing.rows_per_expert(one.experts), one.counts) << one.label();
    EXPECT_EQ(static_cast<std::int64_t>(routing.owned.size()), one.routed_rows) << one.label();
    if (one.draw == "random") continue;
    const bool is_drawn = one.draw == "drawn";
    EXPECT_EQ(is_drawn ? bench::drawn_counts(one.size, one.experts)
                       : std::vector<std::int64_t>(one.experts, one.size),
              one.counts)
        << one.label();
  }
}

TEST(BenchCases, CanAllBePlanned) {
  Options options;
  options.cache_dir = ::testing::TempDir() + "/chord-bench-test";
  const auto engine = Engine::create(options);
  ASSERT_TRUE(engine.ok());
  const auto cases = bench::embedded_cases();
  ASSERT_TRUE(cases.ok());
  for (const BenchCase& one : *cases)
    for (const Architecture arch : one.archs) {
      const auto decision = bench::plan_case(*engine, one, arch, default_num_sms(arch));
      EXPECT_TRUE(decision.ok()) << one.label() << ": " << decision.error().message();
    }
}

TEST(BenchRouting, IndexedBlocksHoldEveryIdOnceBeforeTheirPadding) {
  const auto chosen = bench::random_top_k(33, 10, 4);
  const bench::Routing routing = bench::indexed(chosen, 10, 4, 16);
  ASSERT_EQ(routing.sorted_ids.size(), routing.expert_ids.size() * 16);
  EXPECT_EQ(routing.num_tokens_padded, static_cast<int>(routing.sorted_ids.size()));
  std::set<int> seen;
  for (std::size_t at = 0; at < routing.sorted_ids.size(); ++at) {
    const int id = routing.sorted_ids[at];
    if (id == 132) continue;
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_EQ(chosen[id], routing.expert_ids[at / 16]);
    EXPECT_TRUE(at % 16 == 0 || routing.sorted_ids[at - 1] != 132) << "after padding";
  }
  EXPECT_EQ(seen.size(), 132u);
  for (const OwnedRow& row : routing.owned) EXPECT_EQ(row.source, row.output / 4);
}

TEST(BenchRouting, TokensChooseDifferentExperts) {
  const auto chosen = bench::random_top_k(50, 8, 8);
  for (std::size_t token = 0; token < 50; ++token)
    EXPECT_EQ(std::set<int>(chosen.begin() + token * 8, chosen.begin() + token * 8 + 8).size(), 8u);
}

TEST(BenchRouting, ForeignAndMaskedRowsAreNotOwned) {
  const bench::Routing foreign = bench::indexed({0, -1, 1, -1}, 2, 1, 8);
  EXPECT_EQ(foreign.owned.size(), 2u);
  EXPECT_EQ(foreign.expert_ids, (std::vector<std::int32_t>{-1, 0, 1}));
  EXPECT_EQ(bench::masked({3, 9, -1}, 5).owned.size(), 8u);
}

TEST(BenchSamples, MedianMeanAndInterquartileRange) {
  const bench::Sample sample = bench::summarise({5, 1, 3, 2, 100});
  EXPECT_DOUBLE_EQ(sample.median_us, 3);
  EXPECT_DOUBLE_EQ(sample.mean_us, 22.2);
  EXPECT_DOUBLE_EQ(sample.spread_us, 3);
  EXPECT_DOUBLE_EQ(bench::summarise({1, 2}).median_us, 1.5);
  EXPECT_EQ(bench::summarise(std::vector<double>{}).count, 0);
}

RowError row_of(double difference, double norm) { return {difference, norm, 0, 0, 0, 0}; }

TEST(BenchComparison, OneWrongRowIsSeenAmongManyRightOnes) {
  std::vector<OwnedRow> owned;
  std::vector<RowError> errors;
  for (int i = 0; i < 100000; ++i) {
    owned.push_back({i, i, i / 1000});
    errors.push_back(row_of(1e-6, 1));
  }
  EXPECT_EQ(bench::summarise(owned, errors).violation(), "");
  errors[777] = row_of(0.5, 1);
  const Comparison comparison = bench::summarise(owned, errors);
  EXPECT_LE(comparison.rel_l2, 3e-3);
  EXPECT_EQ(comparison.worst_row, 777);
  EXPECT_EQ(comparison.worst_expert, 0);
  EXPECT_NE(comparison.violation().find("row 777"), std::string::npos);
}

TEST(BenchComparison, EveryKindOfFaultIsAViolation) {
  const std::vector<OwnedRow> owned{{0, 0, 0}};
  for (int field = 0; field < 5; ++field) {
    std::vector<RowError> errors{row_of(0, 1)};
    if (field == 0) errors[0].outliers = 1;
    if (field == 1) errors[0].unwritten = 1;
    if (field == 2) errors[0].non_finite = 1;
    Comparison comparison = bench::summarise(owned, errors);
    if (field == 3) comparison.changed = 1;
    if (field == 4) comparison.flags_left = 1;
    EXPECT_NE(comparison.violation(), "") << field;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(bench::summarise(owned, {row_of(nan, 1)}).violation(), "");
  EXPECT_NE(bench::summarise(owned, {row_of(1, 0)}).violation(), "");
  EXPECT_EQ(bench::summarise(owned, {row_of(0, 0)}).violation(), "");
  EXPECT_EQ(bench::summarise({}, {}).violation(), "");
}

Json row(int size, double us, const std::string& digest) {
  return {{"profile", "p"},
          {"projection", "down"},
          {"n", 64},
          {"k", 64},
          {"experts", 1},
          {"tokens_total", size},
          {"draw", "random"},
          {"median_us", us},
          {"spread_us", 1.0},
          {"read_us", us / 2},
          {"cublas_us", nullptr},
          {"cublas_missing", "not asked for"},
          {"kernel_digest", digest}};
}

Json run_of(const std::vector<Json>& rows, const std::string& flush = "write",
            const std::string& policy = "measured") {
  return {{"gpu", "G"}, {"flush", flush}, {"policy", policy}, {"rows", rows}};
}

Json merged(const Json& file, const Json& run) {
  const auto result = bench::merge(file, run);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
  return result.ok() ? *result : Json();
}

TEST(BenchMerge, KeepsExactlyOneRowPerCase) {
  Json file = merged(Json::object(), run_of({row(1, 10, "a"), row(2, 20, "a")}));
  file = merged(file, run_of({row(2, 21, "a"), row(3, 30, "a")}));
  ASSERT_EQ(file["rows"].size(), 3u);
  EXPECT_EQ(file["rows"][0]["median_us"], 10.0);
  EXPECT_EQ(file["rows"][1]["median_us"], 21.0);
}

TEST(BenchMerge, FurtherTimesLiveAsLongAsTheirKernel) {
  Json file = merged(Json::object(), run_of({row(1, 10, "a")}));
  file = merged(file, run_of({row(1, 9, "a")}, "read"));
  file = merged(file, run_of({row(1, 12, "a")}, "write", "published"));
  EXPECT_EQ(file["rows"][0]["median_us"], 10.0);
  EXPECT_EQ(file["rows"][0]["read_flush_us"], 9.0);
  EXPECT_EQ(file["rows"][0]["published_policy_us"], 12.0);
  file = merged(file, run_of({row(1, 11, "a")}));
  EXPECT_EQ(file["rows"][0]["read_flush_us"], 9.0);
  file = merged(file, run_of({row(1, 8, "b")}));
  EXPECT_FALSE(file["rows"][0].contains("read_flush_us"));
}

TEST(BenchMerge, RefusesWhatWouldNotBeTrue) {
  const Json file = merged(Json::object(), run_of({row(1, 10, "a")}));
  EXPECT_FALSE(bench::merge(file, run_of({row(1, 9, "b")}, "read")).ok()) << "another kernel";
  EXPECT_FALSE(bench::merge(file, run_of({row(2, 9, "a")}, "read")).ok()) << "no such row";
  EXPECT_FALSE(bench::merge(file, run_of({row(1, 9, "a")}, "read", "published")).ok());
  Json other_gpu = run_of({row(1, 9, "a")});
  other_gpu["gpu"] = "H";
  EXPECT_FALSE(bench::merge(file, other_gpu).ok());
  Json wrong = run_of({row(1, 9, "a")});
  wrong["rows"][0]["wrong"] = "relative L2 of row 3";
  EXPECT_FALSE(bench::merge(file, wrong).ok());
  Json untimed = run_of({row(1, 9, "a")});
  untimed["rows"][0]["median_us"] = nullptr;
  EXPECT_FALSE(bench::merge(file, untimed).ok());
}

TEST(BenchResults, AreWrittenAndReadBack) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("h200.json");
  EXPECT_EQ(*bench::read_results(path), Json::object());
  const Json file = run_of({row(1, 10, "a")});
  ASSERT_TRUE(bench::write_results(path, file).ok());
  ASSERT_TRUE(bench::write_results(path, file).ok()) << "over an older one";
  EXPECT_EQ(*bench::read_results(path), file);
  EXPECT_FALSE(bench::write_results(scratch.path("no/such/folder.json"), file).ok());
}

TEST(BenchResults, FindTheDriverRelease) {
  EXPECT_EQ(
      bench::driver_release("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Mon"),
      "580.159.03");
  EXPECT_EQ(bench::driver_release("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                                  "570.86.15  Release Build\nGCC version:  gcc version 12.2.0"),
            "570.86.15");
  EXPECT_EQ(bench::driver_release(""), "");
}

}  // namespace
}  // namespace chord::tools_test
