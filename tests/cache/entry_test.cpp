// The bytes of an entry: there and back, and nothing but what was written is accepted.
#include "cache/entry.h"

#include <gtest/gtest.h>

#include <random>

#include "cache/fields.h"
#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

std::string sealed(const std::string& fields) {
  return "chord cubin 2\n" + content_name(fields) + "\n" + fields;
}

TEST(Entry, ComesBackAsItWasWritten) {
  Entry entry = make_entry(make_key("kernel"));
  entry.local_bytes = 8;
  entry.compile_ms = 0.1;
  entry.cubin_sha256 = std::string(64, '0');
  entry.signer = "ed25519:somebody";
  entry.signature = std::string(128, 'f');
  entry.cubin.push_back('\0');
  const Result<Entry> read = parse_entry(serialize(entry));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->key.text, entry.key.text);
  EXPECT_EQ(read->key.name, entry.key.name);
  EXPECT_EQ(read->kernel_name, entry.kernel_name);
  EXPECT_EQ(read->arch, entry.arch);
  EXPECT_EQ(read->compiler, entry.compiler);
  EXPECT_EQ(read->compile_ms, entry.compile_ms);
  EXPECT_EQ(read->threads, entry.threads);
  EXPECT_EQ(read->shared_bytes, entry.shared_bytes);
  EXPECT_EQ(read->registers, entry.registers);
  EXPECT_EQ(read->local_bytes, entry.local_bytes);
  EXPECT_EQ(read->cluster, entry.cluster);
  EXPECT_EQ(read->cubin_sha256, entry.cubin_sha256);
  EXPECT_EQ(read->signer, entry.signer);
  EXPECT_EQ(read->signature, entry.signature);
  EXPECT_EQ(read->cubin, entry.cubin);
}

TEST(Entry, EveryCutIsDetected) {
  const std::string good = serialize(make_entry(make_key("kernel"), 100));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_entry(std::string_view(good).substr(0, length)).ok()) << length;
}

TEST(Entry, EveryFlippedBitIsDetected) {
  const std::string good = serialize(make_entry(make_key("kernel"), 100));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(parse_entry(damaged).ok()) << bit;
  }
}

TEST(Entry, RandomDamageIsNeverAccepted) {
  std::mt19937 random(20260);
  const std::string good = serialize(make_entry(make_key("kernel"), 300));
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = good;
    for (int edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % (damaged.size() + 1);
      const std::size_t length = std::min<std::size_t>(random() % 40, damaged.size() - at);
      switch (random() % 4) {
        case 0:
          damaged.erase(at, length);
          break;
        case 1:
          damaged.insert(at, damaged.substr(at, length));
          break;
        case 2:
          damaged.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          if (at < damaged.size()) damaged[at] = static_cast<char>(random());
      }
    }
    EXPECT_EQ(parse_entry(damaged).ok(), damaged == good) << round;
  }
}

// The checksum hides the field parser from random damage: here every damage has a right checksum.
// The parser may accept a changed value, but never crashes and never reads past the end.
TEST(Entry, RandomDamageUnderARightChecksumDoesNotCrash) {
  std::mt19937 random(20261);
  const std::string good = serialize(make_entry(make_key("kernel"), 64));
  const std::string fields = good.substr(good.find('\n') + 34);
  ASSERT_TRUE(parse_entry(sealed(fields)).ok());
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = fields;
    for (int edits = 1 + random() % 3; edits > 0; --edits)
      damaged[random() % damaged.size()] = "0123456789:=\n-x"[random() % 15];
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    refused += parse_entry(sealed(damaged)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 5000);
}

TEST(Entry, FieldsOutOfBoundsAreRefusedUnderARightChecksum) {
  const std::string good = serialize(make_entry(make_key("kernel"), 64));
  const std::string fields = good.substr(good.find('\n') + 34);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = fields;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return parse_entry(sealed(changed.replace(at, from.size(), to)));
  };
  EXPECT_FALSE(with("7:threads=3:384", "7:threads=4:-384").ok());
  EXPECT_FALSE(with("7:threads=3:384", "7:threads=3:38x").ok());
  EXPECT_FALSE(with("7:threads=3:384", "7:threads=0:").ok());
  EXPECT_FALSE(with("7:threads=3:384", "7:threads=11:99999999999").ok());
  EXPECT_FALSE(with("10:compile_ms=6:104.25", "10:compile_ms=3:nan").ok());
  EXPECT_FALSE(with("10:compile_ms=6:104.25", "10:compile_ms=3:inf").ok());
  EXPECT_FALSE(with("4:arch=6:sm_90a\n8:compiler", "4:arcx=6:sm_90a\n8:compiler").ok());
  EXPECT_FALSE(parse_entry(sealed(fields + "1:x=1:y\n")).ok());
  EXPECT_FALSE(parse_entry(sealed("")).ok());
}

TEST(Entry, AnotherSchemaIsNamed) {
  std::string bytes = serialize(make_entry(make_key("kernel")));
  bytes.replace(0, 13, "chord cubin 0");
  const Result<Entry> read = parse_entry(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find("schema"), std::string::npos);
}

TEST(Entry, OfAnotherArchitectureIsRefusedByName) {
  const Entry entry = make_entry(make_key("kernel", "sm_90a"));
  const Status status = check_identity(entry, make_key("kernel", "sm_103a"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("sm_90a"), std::string::npos);
  EXPECT_NE(status.error().message().find("differ in: arch"), std::string::npos);
}

TEST(Entry, WhoseCubinIsNotOfItsKeysArchitectureIsRefused) {
  const CacheKey key = make_key("kernel", "sm_103a");
  Entry entry = make_entry(key);
  EXPECT_FALSE(check_identity(entry, key).ok());
  entry.arch = "sm_103a";
  EXPECT_TRUE(check_identity(entry, key).ok());
}

}  // namespace
}  // namespace chord::cache
