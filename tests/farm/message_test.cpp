// What crosses the wire between a node and the farm comes back as it was, and nothing else is
// taken.
#include "src/farm/message.h"

#include <gtest/gtest.h>

#include <random>

#include "cache/fields.h"

namespace chord::farm {
namespace {

cubin::Recipe packer() {
  return *cubin::pack_recipe(Architecture::sm_90a, CodeSource::words, ScaleSource::row_major);
}

TEST(FarmMessage, ARecipeKeepsItsKey) {
  const cubin::Recipe recipe = packer();
  const auto received = decode_recipe(encode(recipe));
  ASSERT_TRUE(received.ok()) << received.error().message();
  EXPECT_EQ(cubin::key_of(received->recipe, "NVRTC 13.0.88").text,
            cubin::key_of(recipe, "NVRTC 13.0.88").text);
  EXPECT_EQ(received->recipe.label, recipe.label);
  EXPECT_EQ(received->recipe.files.size(), recipe.files.size());
}

TEST(FarmMessage, AnotherSourceIsAnotherKey) {
  cubin::Recipe recipe = packer();
  const CacheKey key = cubin::key_of(recipe, "NVRTC 13.0.88");
  recipe.source += "// and more";
  EXPECT_NE(cubin::key_of(decode_recipe(encode(recipe))->recipe, "NVRTC 13.0.88").name, key.name);
}

TEST(FarmMessage, WrongFieldsAreRefused) {
  const std::string good = encode(packer());
  const auto with = [&](std::string_view label, std::string_view value) {
    std::string bytes = good;
    cache::append_field(bytes, label, value);
    return decode_recipe(bytes).ok();
  };
  EXPECT_FALSE(with("arch", "sm_80"));
  EXPECT_FALSE(with("threads", "-1"));
  EXPECT_FALSE(with("threads", "100000"));
  EXPECT_FALSE(with("shared_bytes", "99999999999999"));
  EXPECT_FALSE(with("command", "rm"));
  EXPECT_FALSE(with("label", std::string(5000, 'x')));
  EXPECT_FALSE(decode_recipe("").ok());
  EXPECT_FALSE(decode_recipe("6:schema=1:1\n").ok()) << "an older library's";
  EXPECT_FALSE(decode_recipe("6:schema=1:2\n").ok()) << "without a source";
}

TEST(FarmMessage, ALabelCanNotWriteLinesIntoALog) {
  cubin::Recipe recipe = packer();
  recipe.label = "a\nb\x1b[2J";
  EXPECT_EQ(decode_recipe(encode(recipe))->recipe.label, "a?b?[2J");
}

TEST(FarmMessage, RandomDamageDoesNotCrash) {
  std::mt19937 random(7);
  const std::string good = encode(packer());
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = good.substr(0, 400);
    for (int edits = 1 + random() % 4; edits > 0; --edits)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    refused += decode_recipe(damaged).ok() ? 0 : 1;
  }
  EXPECT_EQ(refused, 2000) << "a part of a recipe is none";
}

TEST(FarmMessage, AReplySaysOneOfTwoThings) {
  EXPECT_EQ(decode_reply(encode(FarmReply{"NVRTC 13.0.88", ""}))->compiler, "NVRTC 13.0.88");
  EXPECT_EQ(decode_reply(encode(FarmReply{"", "line 3"}))->failure, "line 3");
  EXPECT_FALSE(decode_reply(encode(FarmReply{})).ok());
  EXPECT_FALSE(decode_reply(encode(FarmReply{"a", "b"})).ok());
  EXPECT_FALSE(decode_reply("").ok());
  EXPECT_FALSE(decode_reply(encode(packer())).ok());
}

}  // namespace
}  // namespace chord::farm
