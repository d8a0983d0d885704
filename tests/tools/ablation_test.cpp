// chord-bench --ablation where there is no GPU: its flags, its kernels, what is shown and kept.
#include "tools/bench/ablation.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/tools/process.h"
#include "tools/bench/results.h"

namespace chord::tools_test {
namespace {

using bench::Ablation;
using bench::Measurement;

Decision decision_of(abi::Dequantisation form) {
  Decision decision;
  decision.descriptor.family = Family::grouped_masked;
  decision.descriptor.n = 4096;
  decision.descriptor.k = 7168;
  decision.kernel.dequantisation = form;
  return decision;
}

TEST(AblationTool, RefusesFlagsThatMeasureSomethingElse) {
  for (const char* flag :
       {"--merge new.json", "--check-only", "--complete", "--graph", "--cublas", "--host-cost"}) {
    const Outcome outcome = run_tool("chord-bench", words(std::string("--ablation ") + flag));
    EXPECT_EQ(outcome.exit_code, 2) << flag << outcome.err;
    EXPECT_EQ(outcome.out, "") << flag;
    EXPECT_EQ(outcome.err.rfind("error: --ablation\n", 0), 0u) << flag << outcome.err;
  }
}

TEST(AblationTool, ListsCasesAsEver) {
  const Outcome outcome = run_tool("chord-bench", words("--ablation --list --json --cases e12"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.json()["cases"].size(), 4u);
}

TEST(AblationTool, PrewarmsItsKernelsOnlyWhenAsked) {
  if (!can_compile()) GTEST_SKIP() << "no NVRTC on this machine";
  const ScratchFolder scratch;
  const std::vector<std::string> one{"--prewarm",   "--json",
                                     "--cases",     "down 7168x2048 e48 tokens_per_expert 8 exact",
                                     "--cache-dir", scratch.path("cache")};
  const Outcome plain = run_tool("chord-bench", one);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  std::vector<std::string> ablation = one;
  ablation.push_back("--ablation");
  const Outcome further = run_tool("chord-bench", ablation);
  ASSERT_EQ(further.exit_code, 0) << further.err;
  EXPECT_EQ(further.json()["compiles"], 3);
  EXPECT_EQ(run_tool("chord-bench", ablation).json()["compiles"], 0);
}

TEST(AblationRecipes, DifferFromTheKernelAndFromEachOtherInNothingElse) {
  const Decision decision = decision_of(abi::Dequantisation::fused);
  const auto kernel = cubin::gemm_recipe(decision);
  ASSERT_TRUE(kernel.ok());
  std::set<std::string> keys{cubin::key_of(*kernel, "compiler").name};
  for (const Ablation ablation : bench::kAblations) {
    const auto recipe = bench::ablation_recipe(ablation, decision);
    ASSERT_TRUE(recipe.ok()) << recipe.error().message();
    EXPECT_TRUE(keys.insert(cubin::key_of(*recipe, "compiler").name).second) << name(ablation);
    EXPECT_EQ(recipe->threads, kernel->threads);
    EXPECT_EQ(recipe->shared_bytes, kernel->shared_bytes);
    EXPECT_EQ(recipe->files.size(), kernel->files.size() + 1) << "the loop, and the kernel's files";
  }
}

TEST(AblationRecipes, CompileWithoutSpillsInEveryForm) {
  if (!can_compile()) GTEST_SKIP() << "no NVRTC on this machine";
  cubin::NvrtcCompiler compiler(std::nullopt);
  for (const auto form : {abi::Dequantisation::fused, abi::Dequantisation::ordinary,
                          abi::Dequantisation::accumulator})
    for (const Ablation ablation : bench::kAblations) {
      const bool has_forms = ablation == Ablation::dequantisation;
      if (!has_forms && form != abi::Dequantisation::fused) continue;
      const auto recipe = bench::ablation_recipe(ablation, decision_of(form));
      ASSERT_TRUE(recipe.ok()) << recipe.error().message();
      const auto made = compiler.compile(cubin::request_of(*recipe));
      ASSERT_TRUE(made.ok()) << made.error().message();
      EXPECT_EQ(made->local_bytes, 0) << recipe->label << " " << name(form);
    }
}

Measurement measured() {
  Measurement m;
  m.one.profile = "p";
  m.one.size_key = "tokens_total";
  m.decision = decision_of(abi::Dequantisation::fused);
  m.bytes = 1000;
  m.time = bench::summarise({200});
  m.read = bench::summarise({150});
  m.ablations = {{Ablation::loads, bench::summarise({160})},
                 {Ablation::dequantisation, bench::summarise({180})},
                 {Ablation::mma, bench::summarise({170})}};
  return m;
}

TEST(AblationResults, JsonHasTimesAndSharesOfTheRead) {
  const bench::Json row = bench::json_of(measured(), bench::RunHeader{});
  EXPECT_EQ(row["ablation"]["loads"]["median_us"], 160.0);
  EXPECT_EQ(row["ablation"]["dequantisation"]["share_of_read"], 0.833);
  EXPECT_EQ(row["ablation"]["mma"]["spread_us"], 0.0);
  Measurement plain = measured();
  plain.ablations.clear();
  EXPECT_FALSE(bench::json_of(plain, bench::RunHeader{}).contains("ablation"));
}

TEST(AblationResults, ALineShowsEveryPartInTheOrderOfTheHead) {
  const std::string line = bench::ablation_line(measured());
  std::size_t at = 0;
  for (const char* part : {"150.0", "160.0   94%", "180.0   83%", "170.0   88%", "200.0   75%"}) {
    const std::size_t found = line.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " in " << line;
    at = found + 1;
  }
  EXPECT_EQ(line.size(), bench::ablation_head().size());
}

TEST(AblationResults, AWrongResultIsShownAsWrong) {
  Measurement wrong = measured();
  wrong.ablations.clear();
  wrong.time.reset();
  wrong.comparison.unwritten = 3;
  EXPECT_NE(bench::ablation_line(wrong).find("WRONG"), std::string::npos);
  EXPECT_NE(bench::ablation_foot({wrong}).find("1 cases, 1 wrong"), std::string::npos);
}

}  // namespace
}  // namespace chord::tools_test
