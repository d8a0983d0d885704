// moe-layer as a program, as far as it goes without a GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

Outcome run_layer(const std::string& arguments, const ScratchFolder& scratch) {
  return run_program(CHORD_BINARY_DIR "/examples/moe-layer", words(arguments),
                     {{"CHORD_CACHE_DIR", scratch.path("cache")}});
}

std::string error_of(const Outcome& outcome) { return outcome.json()["error"].dump(); }

TEST(MoeLayer, PlansTheSameFromAFolderAndFromMemory) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("tiny");
  const Outcome written = run_layer("--synthetic tiny --write " + folder + " --json", scratch);
  ASSERT_EQ(written.exit_code, 0) << written.out;
  const Outcome from_folder =
      run_layer("--checkpoint " + folder + " --ep 2 --rank 1 --plan-only --json", scratch);
  const Outcome from_memory =
      run_layer("--synthetic tiny --ep 2 --rank 1 --plan-only --json", scratch);
  ASSERT_EQ(from_folder.exit_code, 0) << from_folder.out;
  EXPECT_EQ(from_folder.json()["slots"], 8);
  EXPECT_FALSE(from_folder.json()["plan"].is_null());
  EXPECT_EQ(from_folder.json()["plan"], from_memory.json()["plan"]);
}

TEST(MoeLayer, HonoursTheBlockMOfAnEngine) {
  const ScratchFolder scratch;
  const Outcome outcome =
      run_layer("--synthetic kimi-ep8 --tokens 160 --block-m 48 --plan-only --json", scratch);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_EQ(outcome.json()["plan"]["block_m"], 48);
}

TEST(MoeLayer, NamesAShardThatIsMissing) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("tiny");
  ASSERT_EQ(run_layer("--synthetic tiny --write " + folder, scratch).exit_code, 0);
  std::filesystem::remove(folder + "/model-00002-of-00003.safetensors");
  const Outcome outcome = run_layer("--checkpoint " + folder + " --plan-only --json", scratch);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(error_of(outcome).find("model-00002-of-00003.safetensors"), std::string::npos);
}

TEST(MoeLayer, RefusesFlagsThatDoNotGoTogether) {
  const ScratchFolder scratch;
  for (const char* flags :
       {"--plan-only", "--checkpoint a --synthetic tiny", "--checkpoint a --write b",
        "--synthetic tiny --ep 2 --tp 2", "--synthetic tiny --block-m 12",
        "--synthetic tiny --fused all", "--synthetic huge", "--synthetic tiny --rank 1 --plan-only",
        "--synthetic tiny --role serve", "--checkpoint /nonexistent --plan-only"}) {
    const Outcome outcome = run_layer(std::string(flags) + " --json", scratch);
    EXPECT_EQ(outcome.exit_code, 2) << flags << outcome.out;
    EXPECT_FALSE(outcome.json().is_null()) << flags;
  }
}

TEST(MoeLayer, ShowsWorkingExamples) {
  const ScratchFolder scratch;
  const Outcome outcome = run_layer("--help", scratch);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("moe-layer --synthetic kimi-ep8"), std::string::npos);
}

}  // namespace
}  // namespace chord::tools_test
