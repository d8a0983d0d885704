// Every wrong flag or input: exit code 2, and an error that says asked, found and what helps; with
// --json as one object, with standard error silent.
#include <gtest/gtest.h>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

const std::string kModelFlags = "--model kimi-k2.5 --ep 8 ";
const std::string kShape = "--n 4096 --k 7168 --experts 48 ";
const std::string kIndexedFlags = "--family indexed --profile h200_decode_ep8 " + kShape;
const std::string kMaskedFlags = "--family grouped_masked " + kShape;
const std::string kContiguousFlags = "--family grouped_contiguous " + kShape;

struct Case {
  std::string arguments;
  std::string names;  // what the error must name
};

void expect_refused(const std::string& tool, const std::vector<std::string>& arguments,
                    const std::string& names, const Environment& environment = {}) {
  std::string shown = tool;
  for (const std::string& argument : arguments) shown += " " + argument;
  const Outcome text = run_tool(tool, arguments, environment);
  EXPECT_EQ(text.exit_code, 2) << shown << "\n" << text.out << text.err;
  EXPECT_EQ(text.out, "") << shown;
  EXPECT_EQ(text.err.rfind("error: ", 0), 0u) << shown << "\n" << text.err;
  EXPECT_NE(text.err.find("\nfound: "), std::string::npos) << shown << "\n" << text.err;
  EXPECT_NE(text.err.find(names), std::string::npos) << shown << "\n" << text.err;

  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.begin(), "--json");
  const Outcome json = run_tool(tool, with_json, environment);
  EXPECT_EQ(json.exit_code, 2) << shown;
  EXPECT_EQ(json.err, "") << shown;
  const Json error = json.json().is_object() ? json.json()["error"] : Json(nullptr);
  ASSERT_TRUE(error.is_object()) << shown << "\n" << json.out;
  for (const char* field : {"code", "asked", "found", "help"})
    EXPECT_TRUE(error.contains(field) && error[field].is_string()) << shown << ": " << field;
  EXPECT_NE(error["found"], "") << shown;
}

void expect_all_refused(const std::string& tool, const std::vector<Case>& cases) {
  for (const Case& one : cases) expect_refused(tool, words(one.arguments), one.names);
}

TEST(ExplainBadInput, OfFlagsThemselves) {
  expect_all_refused("chord-explain", {{"", "--family"},
                                       {"--nonsense", "--nonsense"},
                                       {"stray", "stray"},
                                       {kModelFlags + "--rows", "--rows"},
                                       {kModelFlags + "--rows 1 --rows 2", "--rows"},
                                       {kModelFlags + "--rows 0", "--rows"},
                                       {kModelFlags + "--rows -5", "--rows"},
                                       {kModelFlags + "--rows abc", "--rows"},
                                       {kModelFlags + "--rows 12abc", "--rows"},
                                       {kModelFlags + "--rows 1.5", "--rows"},
                                       {kModelFlags + "--rows 1073741825", "--rows"},
                                       {kModelFlags + "--rows 99999999999999999999", "--rows"},
                                       {kModelFlags + "--rows 1 --num-sms 0", "--num-sms"},
                                       {kModelFlags + "--rows 1 --block-m 512", "--block-m"},
                                       {kModelFlags + "--rows 1 --policy best", "best"},
                                       {kModelFlags + "--rows 1 --arch sm_80", "sm_80"},
                                       {kModelFlags + "--rows 1 --arch sm_120a", "sm_120a"},
                                       {kModelFlags + "--table --source", "--source"},
                                       {kModelFlags + "--table --key", "--key"}});
  expect_refused("chord-explain", {"--model", "", "--ep", "8", "--rows", "1"}, "--model");
}

TEST(ExplainBadInput, OfNumbersInOtherSpellings) {
  for (const char* number : {"0x10", "+5", " 5", "5 ", "1e3", "1'000", "1_000", "0b1", ""}) {
    std::vector<std::string> arguments = words(kModelFlags + "--rows");
    arguments.emplace_back(number);
    expect_refused("chord-explain", arguments, "--rows");
  }
  const Outcome zeros = run_tool("chord-explain", words(kModelFlags + "--rows 010 --json"));
  EXPECT_EQ(zeros.json()["gate_up"]["rows"], 10) << "decimal, not octal";
}

TEST(ExplainBadInput, OfAFlagInAValuesPlace) {
  expect_all_refused("chord-explain", {{"--model --ep 8 --rows 1", "--model"},
                                       {kModelFlags + "--rows 1 --arch --table", "--arch"}});
  const Outcome outcome =
      run_tool("chord-prewarm", words(kModelFlags + "--check --manifest --json"));
  EXPECT_EQ(outcome.exit_code, 2) << "a file named --json was written";
  EXPECT_TRUE(outcome.json().contains("error")) << outcome.out << outcome.err;
}

TEST(ExplainBadInput, OfAHundredKilobytesIsAShortMessage) {
  const std::string huge(100000, 'x');
  const std::vector<std::string> model = words(kModelFlags + "--rows 1");
  for (const char* flag : {"--arch", "--role", "--policy", "--family", "--num-sms", "stray"}) {
    std::vector<std::string> arguments = model;
    arguments.insert(arguments.end(), {flag, huge});
    const Outcome outcome = run_tool("chord-explain", arguments);
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_LT(outcome.err.size(), 1000u) << flag;
  }
}

TEST(ExplainBadInput, OfModels) {
  expect_all_refused("chord-explain",
                     {{"--model kimi-k9 --ep 8 --rows 1", "kimi-k9"},
                      {"--model kimi-k2.5 --rows 1", "--ep"},
                      {"--ep 8 --rows 1", "--model"},
                      {kModelFlags + "--tp 8 --rows 1", "--tp"},
                      {"--model kimi-k2.5 --ep 0 --rows 1", "--ep"},
                      {"--model kimi-k2.5 --ep 7 --rows 1", "7"},
                      {"--model kimi-k2.5 --tp 3 --rows 1", "3"},
                      {kModelFlags, "--rows"},
                      {kModelFlags + "--rows 1 --role train", "train"},
                      {kModelFlags + "--rows 1 --family dense", "dense"},
                      {kModelFlags + "--rows 1 --n 4096", "--n"},
                      {kModelFlags + "--rows 1 --profile h200_tp8", "--profile"},
                      {kModelFlags + "--rows 1 --config x.json", "--config"},
                      {"--config /nonexistent.json --ep 8 --rows 1", "nonexistent"},
                      {"--config / --ep 8 --rows 1", "folder"}});
}

TEST(ExplainBadInput, OfShapes) {
  expect_all_refused(
      "chord-explain",
      {{"--family dense " + kShape + "--rows 1", "dense"},
       {"--family indexed " + kShape + "--rows 1", "--profile"},
       {"--family indexed --profile nosuch " + kShape + "--rows 1", "nosuch"},
       {"--family indexed --profile h200_decode_ep8 --k 7168 --experts 48 --rows 1", "--n"},
       {"--family indexed --profile h200_decode_ep8 --n 4096 --experts 48 --rows 1", "--k"},
       {"--family indexed --profile h200_decode_ep8 --n 4096 --k 7168 --rows 1", "--experts"},
       {"--family indexed --profile h200_decode_ep8 --n 4100 --k 7168 --experts 48 --rows 1",
        "4100"},
       {"--family indexed --profile h200_decode_ep8 --n 4096 --k 7200 --experts 48 --rows 1",
        "7200"},
       {kIndexedFlags, "--rows"},
       {kIndexedFlags + "--rows 1 --role decode", "--role"},
       {kIndexedFlags + "--rows 1 --max-m 8", "--max-m"},
       {kIndexedFlags + "--rows 1 --expected-m 8", "--expected-m"},
       {kContiguousFlags + "--rows 1 --profile h200_tp8", "--profile"},
       {kContiguousFlags + "--max-m 8 --rows 1", "--max-m"},
       {kMaskedFlags + "--rows 1", "--rows"},
       {kMaskedFlags + "--expected-m 1", "--max-m"},
       {kMaskedFlags + "--max-m 256", "--expected-m"},
       {kMaskedFlags + "--max-m 256 --expected-m 0", "--expected-m"}});
}

TEST(ExplainBadInput, OfTheEnvironment) {
  const std::vector<std::string> arguments = words(kIndexedFlags + "--rows 160");
  const Environment wrong[] = {{{"CHORD_W4A16_BM", "garbage"}}, {{"CHORD_W4A16_BM", ""}},
                               {{"CHORD_W4A16_BM", "12"}},      {{"CHORD_W4A16_STAGES", "x"}},
                               {{"CHORD_LOG", "loud"}},         {{"CHORD_JIT", "perhaps"}},
                               {{"CHORD_W4A16_CM", "2"}}};
  for (const Environment& environment : wrong)
    expect_refused("chord-explain", arguments, environment.begin()->first, environment);
}

TEST(ExplainBadInput, OfConfigFiles) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("config.json");
  for (const char* text :
       {"", "{", "[]", "{}", "null", "{\"text_config\": 3}", "{\"hidden_size\": \"many\"}",
        "{\"hidden_size\": 7168, \"moe_intermediate_size\": 2048, \"n_routed_experts\": 384, "
        "\"num_experts_per_tok\": 8}"}) {
    write_file(path, text);
    expect_refused("chord-explain", {"--config", path, "--ep", "8", "--rows", "1"}, path);
  }
}

TEST(PrewarmBadInput, OfFlags) {
  expect_all_refused("chord-prewarm", {{"", "--model"},
                                       {"--model kimi-k2.5", "--ep"},
                                       {kModelFlags + "--tp 8", "--tp"},
                                       {"--model kimi-k9 --ep 8", "kimi-k9"},
                                       {"--model kimi-k2.5 --ep 7", "7"},
                                       {kModelFlags + "--role train", "train"},
                                       {kModelFlags + "--arch sm_89", "sm_89"},
                                       {kModelFlags + "--arch", "--arch"},
                                       {kModelFlags + "--family dense", "dense"},
                                       {kModelFlags + "--rows 5", "--rows"},
                                       {kModelFlags + "--rows 0:5", "--rows"},
                                       {kModelFlags + "--rows 5:1", "--rows"},
                                       {kModelFlags + "--rows a:b", "--rows"},
                                       {kModelFlags + "--rows 1:", "--rows"},
                                       {kModelFlags + "--rows :1", "--rows"},
                                       {kModelFlags + "--rows 1:2:3", "--rows"},
                                       {kModelFlags + "--rows 1:1073741825", "--rows"},
                                       {kModelFlags + "--rows 1:99999999999999999999", "--rows"},
                                       {kModelFlags + "--jobs 0", "--jobs"},
                                       {kModelFlags + "--jobs many", "--jobs"},
                                       {kModelFlags + "--dry-run --check", "--check"}});
}

TEST(PrewarmBadInput, WritesNothing) {
  const ScratchFolder scratch;
  const std::string cache = scratch.path("cache");
  const Outcome outcome =
      run_tool("chord-prewarm", words(kModelFlags + "--role train"), {{"CHORD_CACHE_DIR", cache}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(run_program("/bin/ls", {cache}).exit_code, 0) << "the cache folder was made";
}

}  // namespace
}  // namespace chord::tools_test
