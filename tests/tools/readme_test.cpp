// README.md tells the truth: its example is the compiled file, its tables are complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

std::string readme() { return read_file(CHORD_SOURCE_DIR "/README.md"); }

std::string first_block(const std::string& text, const std::string& language) {
  const std::string open = "\n```" + language + "\n";
  const std::size_t start = text.find(open);
  if (start == std::string::npos) return "";
  const std::size_t from = start + open.size();
  return text.substr(from, text.find("```", from) - from);
}

TEST(Readme, ExampleIsTheCompiledFile) {
  EXPECT_EQ(first_block(readme(), "cpp"),
            read_file(CHORD_SOURCE_DIR "/tools/examples/link_example.cpp"));
}

TEST(Readme, ExampleRunsLinkedBothWays) {
  for (const char* kind : {"static", "shared"}) {
    const Outcome outcome =
        run_program(std::string(CHORD_BINARY_DIR "/examples/link-example-") + kind, {});
    EXPECT_EQ(outcome.exit_code, 0) << kind << outcome.err;
    EXPECT_EQ(outcome.out.rfind("block_m 8, tile ", 0), 0u) << outcome.out;
  }
}

TEST(Readme, OpensWithTheTwoCommands) {
  const std::string commands = first_block(readme(), "sh");
  EXPECT_NE(commands.find("tools/quickstart.sh"), std::string::npos);
  EXPECT_NE(commands.find("tools/test.sh"), std::string::npos);
}

TEST(Readme, NamesEveryEnvironmentVariable) {
  const std::string text = readme();
  for (const char* variable : {"CHORD_CACHE_DIR",
                               "CHORD_CACHE_READONLY_DIRS",
                               "CHORD_NVRTC_LIBRARY",
                               "CHORD_NVDISASM",
                               "CHORD_LOG",
                               "CHORD_JIT",
                               "CHORD_W4A16_BM",
                               "CHORD_W4A16_BN",
                               "CHORD_W4A16_BK",
                               "CHORD_W4A16_CM",
                               "CHORD_W4A16_CN",
                               "CHORD_W4A16_STAGES",
                               "XDG_CACHE_HOME",
                               "CHORD_CACHE_MAX_BYTES",
                               "CHORD_CACHE_MAX_FILES",
                               "CHORD_CACHE_MAX_AGE_DAYS",
                               "CHORD_REMOTE",
                               "CHORD_REMOTE_WRITE",
                               "CHORD_REMOTE_DEADLINE_MS",
                               "CHORD_REMOTE_PASSWORD",
                               "CHORD_REMOTE_TOKEN",
                               "CHORD_SIGNATURES",
                               "CHORD_TRUSTED_KEYS",
                               "CHORD_SIGNING_KEY",
                               "CHORD_MANIFEST",
                               "CHORD_COMPILE",
                               "CHORD_FARM_DEADLINE_MS"})
    EXPECT_NE(text.find(variable), std::string::npos) << variable;
}

TEST(Readme, NamesEveryTool) {
  const std::string text = readme();
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(CHORD_SOURCE_DIR) / "tools")) {
    std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || name.rfind("chord_", 0) != 0) continue;
    std::replace(name.begin(), name.end(), '_', '-');
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

// "chord-explain ARGS" lines of the shell blocks run as they stand.
TEST(Readme, ExplainExamplesRun) {
  const std::string text = readme();
  const std::string start = "\nchord-explain ";
  int examples = 0;
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t from = at + start.size();
    const std::string arguments = text.substr(from, text.find('\n', from) - from);
    EXPECT_EQ(run_tool("chord-explain", words(arguments)).exit_code, 0) << arguments;
    ++examples;
  }
  EXPECT_GE(examples, 2);
}

}  // namespace
}  // namespace chord::tools_test
