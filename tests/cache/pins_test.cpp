// Pins: by label, by key, listed, taken back, and what the pruner makes of bad ones.
#include "cache/pins.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

class PinTest : public CacheTest {
 protected:
  static ManifestKey manifest_key(const CacheKey& key, const std::string& label = "a kernel") {
    return {key.name, label, "sm_90a", {}, 0};
  }
  static Manifest manifest_of(const std::string& label, const std::vector<CacheKey>& keys) {
    Manifest manifest;
    manifest.label = label;
    manifest.compiler = "NVRTC 13.0.88";
    for (const CacheKey& key : keys) manifest.keys.push_back(manifest_key(key));
    return manifest;
  }
  std::vector<Pin> pins() { return list_pins(layout(), files, log.sink()); }
  std::uint64_t evicted_to_nothing() {
    Pruner pruner(layout(), Limits{1, 1}, files, clock, log.sink());
    return pruner.prune(0).evicted;
  }

  const CacheKey a = make_key("a"), b = make_key("b"), c = make_key("c");
};

TEST_F(PinTest, OfAManifestIsListedWithWhatIsThere) {
  fill({a, b});
  const auto path = pin_manifest(layout(), manifest_of("decode", {a, b, c}), files, clock);
  ASSERT_TRUE(path.ok()) << path.error().message();
  ASSERT_EQ(pins().size(), 1u);
  const Pin pin = pins().front();
  EXPECT_EQ(pin.path, *path);
  EXPECT_EQ(pin.label, "decode");
  EXPECT_EQ(pin.keys, 3u);
  EXPECT_EQ(pin.present, 2u);
  EXPECT_EQ(pin.bytes_present, std::filesystem::file_size(layout().entry(a.name)) +
                                   std::filesystem::file_size(layout().entry(b.name)));
}

TEST_F(PinTest, OfAKeyStaysAboveTheBoundUntilItIsTakenBack) {
  fill({a, b});
  const auto path = pin_key(layout(), manifest_key(a), "NVRTC 13.0.88", files, clock);
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(*path, layout().pins() + "/key-" + a.name + ".json");
  EXPECT_TRUE(open()->read_manifest(*path).ok()) << "it is a manifest like any other";
  EXPECT_EQ(evicted_to_nothing(), 1u);
  EXPECT_TRUE(std::filesystem::exists(layout().entry(a.name)));
  ASSERT_TRUE(unpin(layout(), a.name, files).ok());
  EXPECT_EQ(evicted_to_nothing(), 1u);
}

TEST_F(PinTest, IsTakenBackByItsLabelAndNoOtherIs) {
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("decode", {a}), files, clock).ok());
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("prefill", {b}), files, clock).ok());
  ASSERT_TRUE(unpin(layout(), "decode", files).ok());
  ASSERT_EQ(pins().size(), 1u);
  EXPECT_EQ(pins().front().label, "prefill");
}

TEST_F(PinTest, ThatIsNotThereCanNotBeTakenBack) {
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("decode", {a}), files, clock).ok());
  for (const std::string& name :
       {std::string("Decode"), a.name, std::string("../x"), std::string()}) {
    const Status status = unpin(layout(), name, files);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::not_found);
    EXPECT_NE(status.error().message().find("'" + name + "'"), std::string::npos);
  }
  EXPECT_EQ(pins().size(), 1u);
}

TEST_F(PinTest, OfNoKeyIsRefused) {
  const auto pinned = pin_key(layout(), {"../../x", "", "", "", 0}, "", files, clock);
  ASSERT_FALSE(pinned.ok());
  EXPECT_NE(pinned.error().message().find("../../x"), std::string::npos);
}

TEST_F(PinTest, GoesIntoNoFolderThatIsNotTrusted) {
  fill({a});
  ASSERT_EQ(::chmod(root().c_str(), 0777), 0);
  const auto pinned = pin_manifest(layout(), manifest_of("decode", {a}), files, clock);
  ASSERT_FALSE(pinned.ok());
  EXPECT_NE(pinned.error().message().find("mode 0777"), std::string::npos);
}

TEST_F(PinTest, ThatCanNotBeWrittenOrRemovedIsAnErrorWithItsReason) {
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("decode", {a}), files, clock).ok());
  files.fail("remove", EIO);
  const Status kept = unpin(layout(), "decode", files);
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, ErrorCode::io_error);
  files.fail("write_exclusive", ENOSPC);
  EXPECT_FALSE(pin_manifest(layout(), manifest_of("prefill", {a}), files, clock).ok());
}

TEST_F(PinTest, ThatCanNotBeReadForAMomentKeepsEverything) {
  fill({a, b});
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("decode", {a}), files, clock).ok());
  for (const char* call : {"read", "list"}) {
    files.fail_if([&](std::string_view made, const std::string& path) {
      return made == call && path.starts_with(layout().pins()) ? EIO : 0;
    });
    EXPECT_EQ(evicted_to_nothing(), 0u) << call;
    EXPECT_TRUE(log.has(LogLevel::warn, layout().pins()));
  }
  files.heal();
  EXPECT_EQ(evicted_to_nothing(), 1u);
}

TEST_F(PinTest, ThatIsDamagedProtectsNothingAndIsNamedOnce) {
  fill({a, b});
  ASSERT_TRUE(pin_manifest(layout(), manifest_of("decode", {a}), files, clock).ok());
  std::ofstream(layout().pins() + "/broken.json") << "{";
  CacheSettings tight = settings();
  tight.max_files = 1;
  const auto cache = open(tight);
  for (int i = 0; i < 3; ++i) (void)cache->prune();
  EXPECT_TRUE(std::filesystem::exists(layout().entry(a.name)));
  EXPECT_FALSE(std::filesystem::exists(layout().entry(b.name)));
  fill({b, c});
  (void)cache->prune();
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_TRUE(log.has(LogLevel::warn, "broken.json"));
}

TEST_F(PinTest, OfAnotherSchemaStillProtects) {
  fill({a, b});
  std::filesystem::create_directories(layout().pins());
  std::ofstream(layout().pins() + "/other.json")
      << R"({"schema": 99, "keys": [{"name": ")" << a.name << R"("}, {"name": 7}, 8]})";
  EXPECT_EQ(evicted_to_nothing(), 1u);
  EXPECT_TRUE(std::filesystem::exists(layout().entry(a.name)));
}

}  // namespace
}  // namespace chord::cache
