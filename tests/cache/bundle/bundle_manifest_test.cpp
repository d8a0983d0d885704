// The list of a bundle: there and back, its bounds, and who signed it.
#include "cache/bundle/bundle_manifest.h"

#include <nlohmann/json.hpp>

#include "tests/cache/bundle/bundle_fixture.h"

namespace chord::cache {
namespace {

using nlohmann::json;

class BundleManifestTest : public BundleTest {
 protected:
  BundleManifest sample() const {
    BundleManifest manifest{manifest_of(3), {}};
    for (const ManifestKey& key : manifest.deployment.keys)
      manifest.members.push_back({key.name, 1000, sha256_hex(key.name)});
    std::sort(manifest.members.begin(), manifest.members.end(),
              [](const BundleMember& a, const BundleMember& b) { return a.name < b.name; });
    return manifest;
  }
  // What parsing says of the sample after `change`.
  template <class Change>
  std::string refusal(Change change) const {
    json object = json::parse(to_json(sample()));
    change(object);
    const auto parsed = parse_bundle_manifest(object.dump());
    return parsed ? "accepted" : parsed.error().message();
  }
};

#define EXPECT_PART(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(BundleManifestTest, GoesThereAndBack) {
  const auto parsed = parse_bundle_manifest(to_json(sample()));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(*parsed, sample());
}

TEST_F(BundleManifestTest, RefusesAnotherFormat) {
  EXPECT_PART(refusal([](json& o) { o["format"] = 2; }), "bundle format 2");
  EXPECT_PART(refusal([](json& o) { o.erase("format"); }), "bundle format 0");
}

TEST_F(BundleManifestTest, RefusesWhatIsMissing) {
  EXPECT_PART(refusal([](json& o) { o.erase("manifest"); }), "'manifest' is missing");
  EXPECT_PART(refusal([](json& o) { o.erase("members"); }), "'members' is no list");
  EXPECT_PART(refusal([](json& o) { o["members"] = 7; }), "'members' is no list");
  EXPECT_PART(refusal([](json& o) { o["manifest"].erase("label"); }), "label");
}

TEST_F(BundleManifestTest, RefusesANameThatIsNoContentName) {
  for (const char* name : {"", "../../x", "/abs", "ABCDEF", "0123456789abcdef0123456789abcdeg"})
    EXPECT_PART(refusal([&](json& o) { o["members"][0]["name"] = name; }), "32 hex digits");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["name"] = 5; }), "32 hex digits");
}

TEST_F(BundleManifestTest, RefusesASizeOutOfBounds) {
  EXPECT_PART(refusal([](json& o) { o["members"][0]["size"] = 0; }), "'size'");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["size"] = -1; }), "'size'");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["size"] = (64 << 20) + 1; }), "'size'");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["size"] = "1"; }), "'size'");
}

TEST_F(BundleManifestTest, RefusesMoreBytesThanItWouldRead) {
  BundleManifest manifest{Manifest{.label = "large"}, {}};
  for (int i = 0; i < 257; ++i) {
    const std::string name = fmt::format("{:032x}", i);
    manifest.deployment.keys.push_back({name, "", "sm_90a", "", 0});
    manifest.members.push_back({name, BundleLimits::entry_bytes, sha256_hex(name)});
  }
  const auto parsed = parse_bundle_manifest(to_json(manifest));
  ASSERT_FALSE(parsed.ok());
  EXPECT_PART(parsed.error().message(), "at most 17179869184 are read");
}

TEST_F(BundleManifestTest, RefusesMoreMembersThanItWouldRead) {
  EXPECT_PART(refusal([](json& o) {
                json member = o["members"][0];
                o["members"] = json::array();
                for (std::size_t i = 0; i <= BundleLimits::members; ++i)
                  o["members"].push_back(member);
              }),
              "'members' is no list of at most");
}

TEST_F(BundleManifestTest, RefusesATextThatIsTooLong) {
  const auto parsed = parse_bundle_manifest(std::string(BundleLimits::manifest_bytes + 1, ' '));
  ASSERT_FALSE(parsed.ok());
  EXPECT_PART(parsed.error().message(), "it is larger than");
}

TEST_F(BundleManifestTest, RefusesABadHash) {
  EXPECT_PART(refusal([](json& o) { o["members"][0]["sha256"] = ""; }), "64 hex digits");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["sha256"] = std::string(64, 'G'); }),
              "64 hex digits");
}

TEST_F(BundleManifestTest, RefusesDuplicatesDisorderAndStrangers) {
  EXPECT_PART(refusal([](json& o) { o["members"][1] = o["members"][0]; }), "is listed twice");
  EXPECT_PART(refusal([](json& o) { std::swap(o["members"][1], o["members"][0]); }), "order");
  EXPECT_PART(refusal([](json& o) { o["members"][0]["name"] = std::string(32, '0'); }),
              "is no key of the deployment");
  EXPECT_PART(refusal([](json& o) { o["manifest"]["keys"][1] = o["manifest"]["keys"][0]; }),
              "is listed twice");
}

TEST_F(BundleManifestTest, SurvivesTextThatIsNoJson) {
  for (const char* text : {"", "{", "[]", "null", "7", "\xff\xfe", "{\"format\":1}"})
    EXPECT_FALSE(parse_bundle_manifest(text).ok()) << text;
  EXPECT_FALSE(parse_bundle_manifest(std::string(1 << 20, '[')).ok());
}

TEST_F(BundleManifestTest, SignatureIsOfOneTextByOneSigner) {
  const std::string text = to_json(sample());
  const std::string signature = sign_manifest(text, key());
  const auto signer = check_manifest(text, signature, trust().trusted());
  ASSERT_TRUE(signer.ok()) << signer.error().message();
  EXPECT_EQ(*signer, key().signer());
  EXPECT_FALSE(check_manifest(text + " ", signature, trust().trusted()).ok());
  EXPECT_FALSE(check_manifest(text, signature, trust(SigningKey::generate()).trusted()).ok());
}

TEST_F(BundleManifestTest, SignatureOfTheBareTextIsNoSignature) {
  const std::string text = to_json(sample());
  const std::string bare = key().signer() + "\n" + key().sign(text) + "\n";
  EXPECT_FALSE(check_manifest(text, bare, trust().trusted()).ok());
}

TEST_F(BundleManifestTest, SignatureFileHasTwoLinesAndNoMore) {
  const std::string text = to_json(sample());
  const std::string good = sign_manifest(text, key());
  for (const std::string& bad : {std::string(), good + "x", good + "\n", good.substr(1),
                                 good.substr(0, good.size() - 1), "\n\n" + good})
    EXPECT_FALSE(check_manifest(text, bad, trust().trusted()).ok()) << bad;
}

}  // namespace
}  // namespace chord::cache
