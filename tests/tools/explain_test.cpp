// chord-explain as a process: the form of its answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "src/base/environment.h"
#include "src/sass/disassembler.h"
#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

constexpr const char* kByModel = "--model kimi-k2.5 --ep 8 --role decode --arch sm_90a --rows 160";
constexpr const char* kIndexed =
    "--family indexed --profile h200_prefill_ep8 --n 4096 --k 7168 --experts 48 --rows 1024";
constexpr const char* kMasked =
    "--family grouped_masked --n 4096 --k 7168 --experts 48 --max-m 256 --expected-m 16";
constexpr const char* kContiguous =
    "--family grouped_contiguous --n 4096 --k 7168 --experts 48 --rows 8192";

Outcome explain(const std::string& arguments, const Environment& environment = {}) {
  return run_tool("chord-explain", words(arguments), environment);
}

Json explain_json(const std::string& arguments, const Environment& environment = {}) {
  const Outcome outcome = explain(arguments + " --json", environment);
  EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.out;
  EXPECT_EQ(outcome.err, "") << arguments;
  return outcome.json();
}

std::set<std::string> keys_of(const Json& json) {
  std::set<std::string> keys;
  for (const auto& item : json.items()) keys.insert(item.key());
  return keys;
}

TEST(Explain, ByShapeIsFlat) {
  for (const char* arguments : {kIndexed, kMasked, kContiguous}) {
    const Json json = explain_json(arguments);
    ASSERT_TRUE(json.is_object()) << arguments;
    for (const char* field : {"schedule", "kernel", "origin", "reasons", "rejected", "unhonoured",
                              "key", "key_missing", "cached", "registers", "local_bytes",
                              "predicted_us", "memory_floor_us", "tensor_floor_us"})
      EXPECT_TRUE(json.contains(field)) << arguments << ": " << field;
  }
}

TEST(Explain, ByModelNestsBothProjections) {
  const Json json = explain_json(kByModel);
  ASSERT_EQ(keys_of(json), (std::set<std::string>{"gate_up", "down", "block_m"}));
  EXPECT_EQ(json["gate_up"]["n"], 4096);
  EXPECT_EQ(json["gate_up"]["k"], 7168);
  EXPECT_EQ(json["down"]["n"], 7168);
  EXPECT_EQ(json["down"]["k"], 2048);
  EXPECT_EQ(json["gate_up"]["experts"], 48);
  EXPECT_EQ(json["gate_up"]["schedule"]["block_m"], json["block_m"]);
  EXPECT_EQ(json["down"]["schedule"]["block_m"], json["block_m"]);
  EXPECT_EQ(json["down"]["kernel"]["block_m"], json["block_m"]);
}

TEST(Explain, ScheduleHasOnlyTheFieldsOfItsFamily) {
  EXPECT_EQ(keys_of(explain_json(kIndexed)["schedule"]),
            (std::set<std::string>{"block_m", "block_n", "block_k", "num_stages", "ctas_per_sm",
                                   "swap_ab", "stream_k"}));
  const std::set<std::string> grouped{"block_m",   "block_n",   "block_k",   "num_stages",
                                      "cluster_m", "cluster_n", "smem_bytes"};
  EXPECT_EQ(keys_of(explain_json(kMasked)["schedule"]), grouped);
  EXPECT_EQ(keys_of(explain_json(kContiguous)["schedule"]), grouped);
}

TEST(Explain, KernelSaysWhatALaunchRequests) {
  const Json kernel = explain_json(kIndexed)["kernel"];
  EXPECT_EQ(kernel["mainloop"], "wgmma");
  EXPECT_EQ(kernel["widths"], 3);
  EXPECT_EQ(explain_json(kMasked)["kernel"]["mainloop"], "mma");
  EXPECT_GT(kernel["shared_bytes"].get<int>(), 0);
  EXPECT_LE(kernel["shared_bytes"].get<int>(), 232448);
  EXPECT_EQ(kernel["threads"].get<int>() % 32, 0);
}

TEST(Explain, ArchitectureAndSmsDoNotComeFromTheMachine) {
  const Json hopper = explain_json(kIndexed);
  EXPECT_EQ(hopper["arch"], "sm_90a");
  EXPECT_EQ(hopper["num_sms"], 132);
  const Json blackwell = explain_json(
      "--family indexed --profile blackwell_decode_ep8 --n 4096 --k 7168 --experts 48 --rows 160");
  EXPECT_EQ(blackwell["arch"], "sm_100a");
  EXPECT_EQ(blackwell["num_sms"], 148);
  EXPECT_EQ(explain_json(std::string(kMasked) + " --num-sms 66")["num_sms"], 66);
}

TEST(Explain, ReasonsAreNamedSentences) {
  const Json reasons = explain_json(kIndexed)["reasons"];
  ASSERT_FALSE(reasons.empty());
  for (const Json& reason : reasons) {
    EXPECT_NE(reason["rule"], "");
    EXPECT_NE(reason["text"], "");
  }
}

TEST(Explain, SaysWhatOfAPublishedScheduleIsNotHonoured) {
  EXPECT_FALSE(explain_json(kIndexed)["unhonoured"].empty());
}

TEST(Explain, AnOverrideIsTheOrigin) {
  const Json json = explain_json(kIndexed, {{"CHORD_W4A16_BM", "48"}});
  EXPECT_EQ(json["schedule"]["block_m"], 48);
  EXPECT_EQ(json["origin"], "override");
}

TEST(Explain, FloorsOfTheLargestShapeDoNotOverflow) {
  const Json json = explain_json(
      "--family indexed --profile h200_decode_ep8 --n 1073741824 --k 1073741824 --experts 16384 "
      "--rows 1073741824");
  EXPECT_GT(json["memory_floor_us"].get<double>(), 1e12);
}

TEST(Explain, TheTableOfAPinnedLayerIsItsAnswers) {
  const Environment pinned{{"CHORD_W4A16_BM", "64"}};
  const std::string layer = "--model kimi-k2.5 --ep 8 --role prefill ";
  const Json table = explain_json(layer + "--table", pinned);
  for (const int rows : {1, 1024, 30000}) {
    const Json answer = explain_json(layer + "--rows " + std::to_string(rows), pinned);
    for (const char* projection : {"gate_up", "down"})
      for (const Json& row : table[projection]["table"]) {
        if (row["min_rows"] >= rows || row["max_rows"] < rows) continue;
        EXPECT_EQ(row["schedule"], answer[projection]["schedule"]) << projection << rows;
        EXPECT_EQ(row["origin"], answer[projection]["origin"]) << projection << rows;
      }
  }
}

TEST(Explain, UnknownShapeIsFallback) {
  const Json json = explain_json(
      "--family indexed --profile h200_decode_ep8 --n 512 --k 256 --experts 8 --rows 8");
  EXPECT_EQ(json["origin"], "fallback");
}

TEST(Explain, KeyAndItsAbsenceExcludeEachOther) {
  const Json json = explain_json(kIndexed);
  EXPECT_NE(json["key"].is_null(), json["key_missing"].is_null());
}

TEST(Explain, SourceIsTheEntryText) {
  const Outcome text = explain(std::string(kIndexed) + " --source");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("chord_kernel"), std::string::npos);
  EXPECT_EQ(explain_json(std::string(kIndexed) + " --source")["source"], text.out);
}

// Needs a compiler and nvdisasm: skips where one of them is missing.
#define CHORD_NEEDS_SASS(nvdisasm)                                        \
  if (!can_compile()) GTEST_SKIP() << "no NVRTC on this machine";         \
  const auto nvdisasm = sass::find_nvdisasm(base::process_environment()); \
  if (!nvdisasm.ok()) GTEST_SKIP() << nvdisasm.error().message()

TEST(Explain, SassCountsTheLoopsOfTheCompiledKernel) {
  CHORD_NEEDS_SASS(nvdisasm);
  const ScratchFolder scratch;
  const Environment environment{{"CHORD_CACHE_DIR", scratch.path("cache")},
                                {"CHORD_NVDISASM", *nvdisasm}};
  const Json json = explain_json(std::string(kMasked) + " --arch sm_103a --sass", environment);
  const Json& sass = json["sass"];
  EXPECT_EQ(sass["arch"], "sm_103a");
  EXPECT_EQ(sass["shared_bytes"], json["kernel"]["shared_bytes"]);
  EXPECT_EQ(sass["local_bytes"], 0);
  EXPECT_EQ(sass["key"], json["key"]);
  EXPECT_EQ(sass["registers"], json["registers"]);
  EXPECT_GT(sass["code_bytes"], 1000);
  const int steps = json["kernel"]["tile_m"].get<int>() / 8;
  ASSERT_LE(steps, 4);  // above, some share a loop
  ASSERT_EQ(sass["loops"].size(), static_cast<std::size_t>(steps)) << sass;
  for (int i = 0; i < steps; ++i) {
    const Json& loop = sass["loops"][i];
    EXPECT_EQ(loop["steps"], i + 1);
    EXPECT_EQ(loop["hmma"], 32 * (i + 1));  // 2 slices of 4 strips of 4 k16
    EXPECT_GT(loop["instructions"], loop["hmma"]);
    EXPECT_EQ(loop["instructions_per_atom"], loop["instructions"].get<double>() / 2);
  }
  // Now that the cache has it, the same numbers come as text and no compiler is asked.
  Environment no_compiler = environment;
  no_compiler["CHORD_JIT"] = "never";
  const Outcome text = explain(std::string(kMasked) + " --arch sm_103a --sass", no_compiler);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.err, "");
  for (const char* field : {"registers", "shared_bytes", "code_bytes"})
    EXPECT_NE(text.out.find(sass[field].dump()), std::string::npos) << field << "\n" << text.out;
  for (const Json& loop : sass["loops"])
    EXPECT_NE(text.out.find(loop["instructions"].dump()), std::string::npos) << text.out;
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Explain, SassWithoutADisassemblerSaysHowToGetOne) {
  const Outcome outcome =
      explain(std::string(kIndexed) + " --sass", {{"CHORD_NVDISASM", "/no/such/nvdisasm"}});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("/no/such/nvdisasm"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("pip install nvidia-cuda-nvdisasm"), std::string::npos);
}

TEST(Explain, SassOfAKernelThatMayNotBeCompiledIsNotCovered) {
  const Outcome outcome = explain(std::string(kIndexed) + " --sass",
                                  {{"CHORD_NVDISASM", "/bin/true"}, {"CHORD_JIT", "never"}});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
}

TEST(Explain, SassBelongsToOneAnswer) {
  const Outcome outcome = explain(std::string(kIndexed) + " --sass --table");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--sass"), std::string::npos) << outcome.err;
}

// (0, 2^30] without a hole, as pairs of edges.
void expect_covers_all_rows(const Json& table) {
  std::int64_t reached = 0;
  for (const Json& row : table) {
    EXPECT_EQ(row["min_rows"], reached);
    EXPECT_GT(row["max_rows"].get<std::int64_t>(), reached);
    reached = row["max_rows"];
  }
  EXPECT_EQ(reached, std::int64_t{1} << 30);
}

TEST(Explain, TableCoversAllRows) {
  for (const char* arguments : {kIndexed, kMasked, kContiguous})
    expect_covers_all_rows(explain_json(std::string(arguments) + " --table")["table"]);
  expect_covers_all_rows(
      explain_json("--family grouped_masked --n 7168 --k 2048 --experts 48 "
                   "--max-m 256 --table")["table"]);
}

int block_m_at(const Json& table, std::int64_t rows) {
  for (const Json& row : table)
    if (rows <= row["max_rows"].get<std::int64_t>()) return row["schedule"]["block_m"];
  return 0;
}

TEST(Explain, TableOfALayerHasOneBlockM) {
  for (const char* shard : {"--ep 8 --role decode", "--ep 8 --role prefill", "--tp 8"}) {
    const Json json = explain_json(std::string("--model kimi-k2.5 --table ") + shard);
    const Json& gate_up = json["gate_up"]["table"];
    const Json& down = json["down"]["table"];
    expect_covers_all_rows(gate_up);
    expect_covers_all_rows(down);
    for (const Json* table : {&gate_up, &down})
      for (const Json& row : *table)
        for (const std::int64_t rows :
             {row["min_rows"].get<std::int64_t>() + 1, row["max_rows"].get<std::int64_t>()})
          EXPECT_EQ(block_m_at(gate_up, rows), block_m_at(down, rows)) << shard << " " << rows;
  }
}

TEST(Explain, TextFitsAPageAndSpeaksOfFloors) {
  for (const char* arguments : {kByModel, kIndexed, kMasked, kContiguous}) {
    const Outcome outcome = explain(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* part : {"memory floor", "tensor floor", "predicted", "padding waste", "why"})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << arguments << ": " << part;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Explain, HelpShowsAnExampleThatRuns) {
  const Outcome help = run_tool("chord-explain", {"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("Exit codes"), std::string::npos);
  std::istringstream lines(help.out);
  int examples = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  chord-explain ", 0) != 0) continue;
    ++examples;
    EXPECT_EQ(explain(line.substr(std::string("  chord-explain ").size())).exit_code, 0) << line;
  }
  EXPECT_GE(examples, 2);
}

TEST(Explain, AFullDiskIsNotSuccess) {
  const Outcome outcome = run_program(
      "/bin/sh", {"-c", tool_path("chord-explain") + " " + kIndexed + " --json > /dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err, "");
}

}  // namespace
}  // namespace chord::tools_test
