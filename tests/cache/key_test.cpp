// Keys: injective text, stable names, differences by label.
#include "cache/key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "cache/fields.h"

namespace chord::cache {
namespace {

TEST(CacheKey, NameIs128BitsOfTheTextInHex) {
  const CacheKey key = KeyBuilder().field("arch", "sm_90a").finish();
  EXPECT_TRUE(is_content_name(key.name)) << key.name;
  EXPECT_EQ(key.name, content_name(key.text));
  // XXH3-128 of no bytes, as its authors publish it.
  EXPECT_EQ(content_name(""), "99aa06d3014798d86001c324468d497f");
}

TEST(CacheKey, TextIsTheFieldsThatWereGiven) {
  const CacheKey key =
      KeyBuilder().field("arch", "sm_90a").field("source", "a:b=c\n\n1:x=1:y\n").finish();
  const Result<KeyFields> fields = key_fields(key.text);
  ASSERT_TRUE(fields.ok()) << fields.error().message();
  const KeyFields expected{{"schema", std::to_string(kSchemaVersion)},
                           {"arch", "sm_90a"},
                           {"source", "a:b=c\n\n1:x=1:y\n"}};
  EXPECT_EQ(*fields, expected);
}

TEST(CacheKey, MovingABytePastAFieldBoundaryGivesAnotherText) {
  const auto text = [](std::string_view label, std::string_view value) {
    return KeyBuilder().field(label, value).finish().text;
  };
  EXPECT_NE(text("ab", "c"), text("a", "bc"));
  EXPECT_NE(text("a", "b=1:c"), text("a=1:b", "c"));
  EXPECT_NE(KeyBuilder().field("a", "").field("b", "").finish().text,
            KeyBuilder().field("a", "1:b=0:\n").finish().text);
}

TEST(CacheKey, ThreeArchitecturesAreThreeKeys) {
  std::set<std::string> names;
  for (const char* arch : {"sm_90a", "sm_100a", "sm_103a"})
    names.insert(KeyBuilder().field("arch", arch).field("source", "same").finish().name);
  EXPECT_EQ(names.size(), 3u);
}

TEST(CacheKey, HundredKeysAreTheSameInAnyOrderOnAnyThreads) {
  const auto key_set = [](const std::vector<int>& order, int threads) {
    std::set<std::string> names;
    std::mutex mutex;
    std::vector<std::thread> workers;
    for (int worker = 0; worker < threads; ++worker)
      workers.emplace_back([&, worker] {
        for (std::size_t i = worker; i < order.size(); i += threads) {
          const std::string source = "kernel " + std::to_string(order[i]);
          const CacheKey key = KeyBuilder().field("source", source).finish();
          std::lock_guard lock(mutex);
          names.insert(key.name);
        }
      });
    for (std::thread& worker : workers) worker.join();
    return names;
  };
  std::vector<int> order(100);
  for (int i = 0; i < 100; ++i) order[i] = i;
  const std::set<std::string> expected = key_set(order, 1);
  EXPECT_EQ(expected.size(), 100u);
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    EXPECT_EQ(key_set(order, 1), expected);
    EXPECT_EQ(key_set(order, 8), expected);
  }
}

TEST(CacheKey, DifferencesAreNamedByLabel) {
  const auto key = [](std::string_view arch, std::string_view source, bool extra) {
    KeyBuilder builder;
    builder.field("arch", arch).field("source", source);
    if (extra) builder.field("option", "-G");
    return builder.finish().text;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(differing_fields(key("a", "s", false), key("a", "s", false)), Labels{});
  EXPECT_EQ(differing_fields(key("a", "s", false), key("b", "s", false)), Labels{"arch"});
  EXPECT_EQ(differing_fields(key("a", "s", false), key("a", "t", true)),
            (Labels{"source", "option"}));
}

TEST(CacheKey, DamagedTextIsRefused) {
  const std::string good = KeyBuilder().field("arch", "sm_90a").finish().text;
  for (std::size_t length = 1; length < good.size(); ++length) {
    const std::string cut = good.substr(0, length);
    const bool ends_a_field = cut.back() == '\n';
    EXPECT_EQ(key_fields(cut).ok(), ends_a_field) << cut;
  }
  for (const char* text : {"", "x", "06:schema=1:1\n", "6:schema=01:1\n", "6:schema=-1:1\n",
                           "6:schema=18446744073709551616:1\n", "6:schema=99999999999:1\n",
                           "4:arch=1:1\n", "6:schema:1:1\n", "6:schema=1:1"})
    EXPECT_FALSE(key_fields(text).ok()) << text;
}

TEST(CacheKey, OnlyThirtyTwoLowerCaseHexDigitsAreAName) {
  EXPECT_TRUE(is_content_name(std::string(32, 'a')));
  for (const std::string& text :
       {std::string(), std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'A'),
        std::string(30, 'a') + "/.", std::string(31, 'a') + '\0'})
    EXPECT_FALSE(is_content_name(text)) << text;
}

}  // namespace
}  // namespace chord::cache
