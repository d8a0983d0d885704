// Keys in files, and entries that are believed only with the right signature.
#include "cache/signatures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

class SignaturesTest : public CacheTest {
 protected:
  std::string write(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = folder / name;
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  Verdict check(const Entry& entry) const { return signatures_of(signing_key).check(entry); }
};

TEST_F(SignaturesTest, HashIsSha256) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 8032, section 7.1, test 2.
TEST_F(SignaturesTest, SignatureIsEd25519) {
  const auto key = SigningKey::parse(
      "chord-signing-key ed25519:"
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n",
      "RFC 8032");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->signer(),
            "ed25519:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  EXPECT_EQ(key->sign("\x72"),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
}

TEST_F(SignaturesTest, KeysComeBackFromTheirFiles) {
  const auto read = SigningKey::read(write("key", signing_key.file_text(), 0600), real);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->signer(), signing_key.signer());
  const auto trusted = TrustedKeys::read(
      write("trusted", "# keys\n\n" + signing_key.signer() + " the build machine\n", 0644), real);
  ASSERT_TRUE(trusted.ok()) << trusted.error().message();
  EXPECT_EQ(trusted->all().at(signing_key.signer()), "the build machine");
}

TEST_F(SignaturesTest, ASecretThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0666}) {
    const auto read = SigningKey::read(write("key", signing_key.file_text(), mode), real);
    ASSERT_FALSE(read.ok()) << mode;
    EXPECT_NE(read.error().message().find("mode"), std::string::npos);
  }
}

TEST_F(SignaturesTest, ATrustedFileThatOthersMayWriteIsRefused) {
  EXPECT_FALSE(TrustedKeys::read(write("trusted", signing_key.signer(), 0666), real).ok());
}

TEST_F(SignaturesTest, WrongKeyFilesAreRefusedAndNeverRepeated) {
  const std::string secret = signing_key.file_text();
  const std::string digits = secret.substr(secret.size() - 65, 64);
  for (const std::string& text :
       {std::string(), signing_key.signer(), secret.substr(0, secret.size() - 2), "x" + secret,
        std::string("chord-signing-key rsa:") + digits}) {
    const auto parsed = SigningKey::parse(text, "key");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message().find(digits.substr(0, 16)), std::string::npos);
  }
  const auto trusted = TrustedKeys::parse("# ours\n" + secret, "trusted");
  ASSERT_FALSE(trusted.ok());
  EXPECT_NE(trusted.error().message().find("line 2 is a secret key"), std::string::npos);
  EXPECT_EQ(trusted.error().message().find(digits.substr(0, 16)), std::string::npos);
  EXPECT_FALSE(TrustedKeys::parse("ed25519:abc nobody\n", "trusted").ok());
}

TEST_F(SignaturesTest, ASignedEntryIsBelieved) {
  const Entry entry = signed_entry(make_key("a"), signing_key);
  EXPECT_TRUE(check(entry).is_good()) << check(entry).text;
}

TEST_F(SignaturesTest, EveryOtherEntryIsAMissWithItsReason) {
  const Entry good = signed_entry(make_key("a"), signing_key);
  EXPECT_EQ(check(make_entry(make_key("a"))).reason, MissReason::not_signed);
  EXPECT_EQ(check(signed_entry(make_key("a"), SigningKey::generate())).reason,
            MissReason::unknown_signer);
  Entry claims_to_be_ours = signed_entry(make_key("a"), SigningKey::generate());
  claims_to_be_ours.signer = signing_key.signer();
  EXPECT_EQ(check(claims_to_be_ours).reason, MissReason::bad_signature);
  Entry swapped = good;
  swapped.signature = signed_entry(make_key("b"), signing_key).signature;
  EXPECT_EQ(check(swapped).reason, MissReason::bad_signature);
  Entry other_cubin = good;
  other_cubin.cubin.back() ^= 1;
  EXPECT_EQ(check(other_cubin).reason, MissReason::bad_signature);
  other_cubin.cubin_sha256 = sha256_hex(other_cubin.cubin);
  EXPECT_EQ(check(other_cubin).reason, MissReason::bad_signature);
  Entry cut = good;
  cut.signature.pop_back();
  EXPECT_EQ(check(cut).reason, MissReason::bad_signature);
}

TEST_F(SignaturesTest, ASignatureBindsEveryFact) {
  const Entry good = signed_entry(make_key("a"), signing_key);
  const auto is_refused = [&](auto change) {
    Entry changed = good;
    change(changed);
    return check(changed).reason == MissReason::bad_signature;
  };
  EXPECT_TRUE(is_refused([](Entry& e) { e.key.text += " "; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.kernel_name += "x"; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.arch = "sm_100a"; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.compiler += "x"; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.compile_ms += 1; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.threads += 1; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.shared_bytes += 1; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.registers += 1; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.local_bytes += 1; }));
  EXPECT_TRUE(is_refused([](Entry& e) { e.cluster += 1; }));
}

TEST_F(SignaturesTest, WhatThisMachineMadeNeedsNoSignatureUnlessTheyAreRequired) {
  fill({make_key("a")});
  EXPECT_NE(open()->find(make_key("a")), nullptr);
  CacheSettings strict = settings();
  strict.signatures = signatures_of(signing_key, SignaturePolicy::required);
  const auto cache = open(strict);
  EXPECT_EQ(cache->find(make_key("a")), nullptr);
  const auto counters = cache->counters();
  EXPECT_EQ(counters.no_value[static_cast<int>(MissReason::not_signed)], 1u);
  EXPECT_EQ(log.warnings().size(), 1u);
  // Made again, it is signed, and the next process believes it.
  ASSERT_TRUE(cache->get_or_make(make_key("a"), maker(make_key("a"))).ok());
  EXPECT_NE(open(strict)->find(make_key("a")), nullptr);
}

TEST_F(SignaturesTest, AMachineVouchesForWhatItMadeBeforeItHadAKey) {
  const CacheKey key = make_key("a");
  fill({key});
  CacheSettings signing = settings();
  signing.signatures = signatures_of(signing_key);
  const auto cache = open(signing);
  EXPECT_EQ(cache->vouch(cache->find(key))->signer, signing_key.signer());
  CacheSettings strict = settings();
  strict.signatures = signatures_of(signing_key, SignaturePolicy::required);
  EXPECT_NE(open(strict)->find(key), nullptr);
}

TEST_F(SignaturesTest, TakingAKeyOffTheListTakesTheTrustBack) {
  CacheSettings signing = settings();
  signing.signatures = signatures_of(signing_key, SignaturePolicy::required);
  ASSERT_TRUE(open(signing)->get_or_make(make_key("a"), maker(make_key("a"))).ok());
  CacheSettings revoked = settings();
  revoked.signatures = Signatures(SignaturePolicy::required, {}, std::nullopt);
  EXPECT_EQ(open(revoked)->find(make_key("a")), nullptr);
  EXPECT_TRUE(std::filesystem::exists(layout().entry(make_key("a").name))) << "nothing is lost";
}

}  // namespace
}  // namespace chord::cache
