// Keys that stand twice, wherever they stand.
#include "tools/examples/checked_json.h"

#include <gtest/gtest.h>

#include "tests/tools/examples/files.h"

namespace chord::examples {
namespace {

std::string json_refusal(const std::string& text) { return message_of(parse_object(text, "it")); }

TEST(CheckedJson, RefusesAKeyThatStandsTwiceAtAnyDepth) {
  for (const char* text :
       {R"({"a": 1, "a": 1})", R"({"x": {"a": 1, "a": 2}})", R"({"x": [[{"a": 1, "a": {}}]]})",
        R"({"x": {"y": {"z": {"b": 1, "a": 2, "a": 3}}}})", R"({"a": {"b": 1}, "a": 2})",
        R"({"x": {"a": {"a": 1}, "a": 1}})"})
    EXPECT_TRUE(has(json_refusal(text), "'a' stands there twice")) << text;
}

TEST(CheckedJson, RefusesAnEmptyKeyThatStandsTwice) {
  EXPECT_TRUE(has(json_refusal(R"({"": 1, "": 1})"), "'' stands there twice"));
}

TEST(CheckedJson, TakesTheSameKeyInDifferentObjects) {
  for (const char* text : {R"({"a": {"a": {"a": 1}}})", R"({"x": {"a": 1}, "y": {"a": 1}, "a": 1})",
                           R"({"x": [{"a": 1}, {"a": 1}], "a": [{"a": {}}]})"})
    EXPECT_EQ(json_refusal(text), "") << text;
}

TEST(CheckedJson, RefusesDeepNestingOfEitherKind) {
  std::string objects, arrays = R"({"a": )";
  for (int i = 0; i < 30; ++i) objects += R"({"a": )", arrays += "[";
  objects += "1" + std::string(30, '}');
  arrays += std::string(30, ']') + "}";
  EXPECT_TRUE(has(json_refusal(objects), "nested deeper than 16")) << json_refusal(objects);
  EXPECT_TRUE(has(json_refusal(arrays), "nested deeper than 16")) << json_refusal(arrays);
}

}  // namespace
}  // namespace chord::examples
