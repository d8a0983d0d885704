// Manifests: there and back, pinned, and what is wrong with a bad one.
#include "cache/manifest.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

Manifest sample() {
  Manifest manifest{.label = "kimi-k2.5 ep8 decode", .compiler = "NVRTC 13.0.88"};
  manifest.coverage = {.keys = 2, .present = 1, .rows = "1:1073741824"};
  manifest.keys.push_back(
      {std::string(32, 'a'), "sm_90a indexed 4096x7168", "sm_90a", std::string(32, 'b'), 103424});
  manifest.keys.push_back({std::string(32, 'c'), "sm_90a indexed 7168x2048", "sm_90a", "", 0});
  return manifest;
}

class ManifestTest : public CacheTest {};

TEST_F(ManifestTest, ComesBackAsItWasWritten) {
  const auto cache = open();
  const std::string path = folder / "sub/manifest.json";
  const Result<std::string> written = cache->write_manifest(sample(), path);
  ASSERT_TRUE(written.ok()) << written.error().message();
  EXPECT_EQ(*written, path);
  const Result<Manifest> read = cache->read_manifest(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, sample());
}

TEST_F(ManifestTest, IsPinnedOncePerLabel) {
  const auto cache = open();
  const Result<std::string> first = cache->write_manifest(sample());
  Manifest changed = sample();
  changed.keys.pop_back();
  const Result<std::string> second = cache->write_manifest(changed);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(pinned_manifests(layout(), files, log.sink()), std::vector<Manifest>{changed});
}

TEST_F(ManifestTest, TellsTheCompilerOfAFolderThatRecordedNone) {
  ASSERT_TRUE(open()->write_manifest(sample()).ok());
  EXPECT_EQ(open()->compiler_identities(), std::vector<std::string>{"NVRTC 13.0.88"});
}

TEST_F(ManifestTest, ThatIsUnreadableIsNamedAndLeftOut) {
  ASSERT_TRUE(open()->write_manifest(sample()).ok());
  std::ofstream(layout().pins() + "/broken.json") << "{";
  EXPECT_EQ(pinned_manifests(layout(), files, log.sink()).size(), 1u);
  EXPECT_TRUE(log.has(LogLevel::warn, "broken.json"));
}

TEST_F(ManifestTest, MissingFileIsAnErrorThatNamesIt) {
  const Result<Manifest> read = open()->read_manifest(folder / "none.json");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find("none.json"), std::string::npos);
}

TEST_F(ManifestTest, UnwritablePathIsAnError) {
  std::ofstream(folder / "file") << "x";
  EXPECT_FALSE(open()->write_manifest(sample(), folder / "file/manifest.json").ok());
  EXPECT_FALSE(open()->write_manifest(sample(), folder.path() + "/").ok());
}

TEST_F(ManifestTest, WithoutAWritableFolderAFileIsStillWritten) {
  const auto cache = open(CacheSettings{});
  EXPECT_TRUE(cache->write_manifest(sample(), folder / "manifest.json").ok());
  EXPECT_FALSE(cache->write_manifest(sample()).ok());
}

TEST(Manifest, WrongMembersAreNamed) {
  const std::string good = to_json(sample());
  const auto error_of = [&](std::string_view from, std::string_view to) {
    std::string changed = good;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const Result<Manifest> parsed = parse_manifest(changed.replace(at, from.size(), to), "file");
    return parsed.ok() ? std::string("accepted") : parsed.error().message();
  };
  const auto names = [](const std::string& message, std::string_view part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(names(error_of("\"schema\": 2", "\"schema\": 99"), "schema 99"));
  EXPECT_TRUE(names(error_of("\"schema\": 2", "\"schema\": 0"), "schema 0"));
  EXPECT_TRUE(names(error_of("\"schema\": 2", "\"schema\": \"2\""), "'schema'"));
  EXPECT_TRUE(names(error_of("\"size\": 103424", "\"size\": -1"), "'size' of keys[0]"));
  EXPECT_TRUE(names(error_of("\"size\": 103424", "\"size\": 1e3"), "'size' of keys[0]"));
  EXPECT_TRUE(names(error_of("\"arch\"", "\"ark\""), "'arch' of keys[0] is missing"));
  EXPECT_TRUE(names(error_of(std::string(32, 'c'), "../../x"), "'name' of keys[1]"));
  EXPECT_TRUE(names(error_of("\"coverage\": {", "\"coverage\": 1, \"x\": {"), "'keys'"));
  for (const char* text : {"", "null", "[]", "{}", "{\"schema\": 1}", "\xff"})
    EXPECT_FALSE(parse_manifest(text, "file").ok()) << text;
}

TEST(Manifest, AnOlderSchemaIsReadAndPinnedUnderANameOfItsOwn) {
  Manifest older = sample();
  older.schema = 1;
  const Result<Manifest> read = parse_manifest(to_json(older), "file");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->schema, 1);
  EXPECT_NE(pin_name(older), pin_name(sample()));
}

TEST(Manifest, RandomDamageDoesNotCrash) {
  std::mt19937 random(27);
  const std::string good = to_json(sample());
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = good;
    for (int edits = 1 + random() % 4; edits > 0; --edits)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    refused += parse_manifest(damaged, "file").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

TEST(Manifest, ALabelThatIsNoUtf8DoesNotThrow) {
  Manifest manifest = sample();
  manifest.label = "\xff\xfe";
  EXPECT_TRUE(parse_manifest(to_json(manifest), "file").ok());
}

}  // namespace
}  // namespace chord::cache
