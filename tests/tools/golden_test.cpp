// Golden schedules through the tool: every third case, as a user would ask for it.
#include <gtest/gtest.h>

#include "tests/tools/process.h"

namespace chord::tools_test {
namespace {

// "--experts 48" for every size of a case; routed_rows is --rows.
std::string arguments_of(const Json& one) {
  std::string arguments = "--policy published --json";
  for (const auto& item : one.items()) {
    if (item.key() == "expect") continue;
    std::string flag = item.key() == "routed_rows" ? "rows" : item.key();
    for (char& c : flag)
      if (c == '_') c = '-';
    const std::string value =
        item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
    arguments += " --" + flag + " " + value;
  }
  return arguments;
}

TEST(GoldenSchedules, ComeOutOfTheToolUnchanged) {
  const Json golden = Json::parse(read_file(CHORD_SOURCE_DIR "/tests/golden/golden_schedules.json"),
                                  nullptr, false);
  ASSERT_TRUE(golden.is_object());
  ASSERT_GT(golden["cases"].size(), 100u);
  for (std::size_t i = 0; i < golden["cases"].size(); i += 3) {
    const Json& one = golden["cases"][i];
    const std::string arguments = arguments_of(one);
    const Json answer = run_tool("chord-explain", words(arguments)).json();
    ASSERT_TRUE(answer.is_object()) << arguments;
    for (const auto& item : one["expect"].items())
      EXPECT_EQ(answer["schedule"][item.key()], item.value()) << arguments << ": " << item.key();
  }
}

}  // namespace
}  // namespace chord::tools_test
