// Whom an import believes: one wrong signature, hash or name, and nothing of the bundle is stored.
#include "tests/cache/bundle/bundle_fixture.h"

namespace chord::cache {
namespace {

using BundleTrustTest = BundleTest;

TEST_F(BundleTrustTest, HandMadeBundleIsTaken) {
  write(raw_members(2));  // else the refusals below would prove nothing
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(sink.stored.size(), 2u);
}

TEST_F(BundleTrustTest, RefusesASignerThatNobodyTrusts) {
  make_bundle(2);
  RecordingSink sink;
  const SigningKey other = SigningKey::generate();
  const auto report = import_bundle(bundle_path(), trust(other), {}, sink.sink(), files);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(
      report.error().message().find("manifest.sig: the bundle is signed by " + key().signer()),
      std::string::npos)
      << report.error().message();
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(BundleTrustTest, WithoutTrustedKeysNothingIsTaken) {
  make_bundle(1);
  RecordingSink sink;
  EXPECT_FALSE(import_bundle(bundle_path(), Signatures(), {}, sink.sink(), files).ok());
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(BundleTrustTest, RefusesAnUnsignedBundle) {
  auto members = raw_members(2);
  members[1].content.clear();
  write(members);
  expect_refused("manifest.sig: it is not a signer and a signature");
  members.erase(members.begin() + 1);
  write(members);
  expect_refused("manifest.sig has to be");
}

TEST_F(BundleTrustTest, RefusesAnEditedManifest) {
  auto members = raw_members(2);
  const std::size_t label = members[0].content.find("\"raw\"");
  ASSERT_NE(label, std::string::npos);
  members[0].content[label + 1] = 'R';
  write(members);
  expect_refused("manifest.sig: it is not the signature of manifest.json");
}

TEST_F(BundleTrustTest, RefusesTheSignatureOfAnotherBundle) {
  auto members = raw_members(2);
  members[1] = raw_members(3)[1];
  write(members);
  expect_refused("manifest.sig: it is not the signature");
}

TEST_F(BundleTrustTest, ReadsNoListThatIsNotSigned) {
  auto members = raw_members(1);
  members[0].content = "this is no JSON";
  write(members);
  expect_refused("manifest.sig: it is not the signature");  // and says nothing of the JSON
  sign(members, "this is no JSON");
  write(members);
  expect_refused("manifest.json: it is not JSON");
}

TEST_F(BundleTrustTest, RefusesAChangedEntry) {
  auto members = raw_members(2);
  members[3].content.back() ^= 1;
  write(members);
  expect_refused(members[3].name + ": its SHA-256");
}

TEST_F(BundleTrustTest, RefusesSwappedEntries) {
  auto members = raw_members(2);
  std::swap(members[2].content, members[3].content);
  write(members);
  expect_refused(members[2].name + ": its SHA-256");
}

TEST_F(BundleTrustTest, RefusesEntriesThatTheSignerSwapped) {
  auto members = raw_members(2);
  std::swap(members[2].content, members[3].content);
  BundleManifest manifest = *parse_bundle_manifest(members[0].content);
  std::swap(manifest.members[0].size, manifest.members[1].size);
  std::swap(manifest.members[0].sha256, manifest.members[1].sha256);
  sign(members, to_json(manifest));
  write(members);
  expect_refused(members[2].name + ": it is of key " + manifest.members[1].name);
}

TEST_F(BundleTrustTest, RefusesWhatIsNoEntry) {
  auto members = raw_members(1);
  members[2].content = "a text";
  BundleManifest manifest = *parse_bundle_manifest(members[0].content);
  manifest.members[0].size = members[2].content.size();
  manifest.members[0].sha256 = sha256_hex(members[2].content);
  sign(members, to_json(manifest));
  write(members);
  expect_refused(members[2].name + ": it is not an entry of this cache");
}

TEST_F(BundleTrustTest, RefusesAnUnsignedEntry) {
  write(raw_members({signed_entry(key_of(0), key()), make_entry(key_of(1))}));
  expect_refused("entries/" + key_of(1).name + ": it is not signed");
}

TEST_F(BundleTrustTest, RefusesAnEntryOfASignerThatNobodyTrusts) {
  const SigningKey other = SigningKey::generate();
  write(raw_members({signed_entry(key_of(0), key()), signed_entry(key_of(1), other)}));
  expect_refused("entries/" + key_of(1).name + ": it is signed by " + other.signer());
}

TEST_F(BundleTrustTest, TakesEntriesOfASecondTrustedSigner) {
  const SigningKey farm = SigningKey::generate();
  write(raw_members({signed_entry(key_of(0), key()), signed_entry(key_of(1), farm)}));
  TrustedKeys trusted = trust().trusted();
  trusted.add(farm.signer(), "farm");
  RecordingSink sink;
  const Signatures both(SignaturePolicy::required, trusted, std::nullopt);
  EXPECT_TRUE(import_bundle(bundle_path(), both, {}, sink.sink(), files).ok());
}

TEST_F(BundleTrustTest, RefusesTheSignatureOfAnotherEntry) {
  Entry entry = signed_entry(key_of(0), key());
  entry.signature = signed_entry(key_of(1), key()).signature;
  write(raw_members({entry}));
  expect_refused("entries/" + entry.key.name + ": the signature is not");
}

TEST_F(BundleTrustTest, RefusesACubinOfAnotherArchitectureThanItsKey) {
  Entry entry = make_entry(key_of(0));
  entry.arch = "sm_100a";
  signatures_of(key()).sign(entry);
  write(raw_members({entry}));
  expect_refused("its cubin is for sm_100a, the key says sm_90a");
}

TEST_F(BundleTrustTest, RefusesAnotherArchitectureThanTheListSays) {
  auto members = raw_members(1);
  BundleManifest manifest = *parse_bundle_manifest(members[0].content);
  manifest.deployment.keys[0].arch = "sm_100a";
  sign(members, to_json(manifest));
  write(members);
  expect_refused(members[2].name + ": it is for sm_90a, the manifest says sm_100a");
}

}  // namespace
}  // namespace chord::cache
