// The remote tier between a cache and a back-end: packed on the wire, never more than it says, and
// misbehaving stores cost one deadline and one warning (case by case, through the whole cache).
#include "cache/remote/remote_tier.h"

#include <zstd.h>

#include <map>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/cache/remote/redis_fixture.h"

namespace chord::cache {
namespace {

class MapBackend final : public RemoteBackend {
 public:
  std::string name() const override { return "map"; }
  TierAnswer get(const CacheKey& key) override {
    const auto found = objects.find(key.name);
    if (found == objects.end()) return {Lookup::absent, {}, "not there"};
    return {Lookup::value, found->second, {}};
  }
  TierAnswer head(const CacheKey& key) override { return get(key); }
  Status put(const CacheKey& key, std::string_view bytes) override {
    objects[key.name] = bytes;
    return {};
  }
  Status remove(const CacheKey& key) override {
    objects.erase(key.name);
    return {};
  }

  std::map<std::string, std::string> objects;
};

class RemoteTierTest : public ::testing::Test {
 protected:
  const SigningKey signing_key = SigningKey::generate();
  const CacheKey key = make_key("a");
  const std::string bytes = serialize(signed_entry(key, signing_key, 50000));
  std::shared_ptr<MapBackend> backend = std::make_shared<MapBackend>();
  RemoteTier tier{backend, true};
};

TEST_F(RemoteTierTest, BytesComeBackAndAreSmallerOnTheWire) {
  ASSERT_TRUE(tier.put(key, bytes).ok());
  EXPECT_LT(backend->objects[key.name].size(), bytes.size());
  const TierAnswer answer = tier.get(key);
  ASSERT_EQ(answer.lookup, Lookup::value);
  EXPECT_EQ(answer.bytes, bytes);
}

TEST_F(RemoteTierTest, AnUnsignedEntryIsNotSent) {
  const Status status = tier.put(key, serialize(make_entry(key)));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("CHORD_SIGNING_KEY"), std::string::npos);
  EXPECT_TRUE(backend->objects.empty());
}

TEST_F(RemoteTierTest, ATierThatOnlyReadsWritesAndRemovesNothing) {
  ASSERT_TRUE(tier.put(key, bytes).ok());
  RemoteTier reader(backend, false);
  EXPECT_FALSE(reader.put(key, bytes).ok());
  EXPECT_FALSE(reader.remove(key).ok());
  reader.set_aside(key, "damaged");
  EXPECT_EQ(backend->objects.size(), 1u);
  tier.set_aside(key, "damaged");
  EXPECT_TRUE(backend->objects.empty());
}

TEST_F(RemoteTierTest, WhatIsNoFrameOfKnownSizeIsRefused) {
  ASSERT_TRUE(tier.put(key, bytes).ok());
  const std::string good = backend->objects[key.name];
  for (const std::string& wrong : {std::string(), std::string("<html>"), bytes,
                                   good.substr(0, good.size() / 2), good.substr(0, 3)}) {
    backend->objects[key.name] = wrong;
    EXPECT_EQ(tier.get(key).lookup, Lookup::refused) << wrong.size();
  }
}

TEST_F(RemoteTierTest, AFrameThatWouldFillTheMemoryIsRefusedUnread) {
  const std::string zeros(kMaxUnpackedBytes + 1, '\0');
  std::string packed(ZSTD_compressBound(zeros.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  backend->objects[key.name] = packed;
  const TierAnswer answer = tier.get(key);
  EXPECT_EQ(answer.lookup, Lookup::refused);
  EXPECT_NE(answer.reason.find("bytes"), std::string::npos);
}

struct Fault {
  const char* name;
  void (*begin)(testing::FaultProxy&);
};

// Every way in which a store misbehaves, through a whole cache on a real server.
class Misbehaviour : public RedisTest, public ::testing::WithParamInterface<Fault> {
 protected:
  static constexpr std::int64_t kDeadlineMs = 200;

  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    proxy = std::make_unique<testing::FaultProxy>(server->port());
    CacheSettings settings;
    settings.writable_dir = folder / "cache";
    settings.signatures = signatures_of(signing_key);
    auto remote = make_redis_backend(settings_of(url_of_port(proxy->port()), kDeadlineMs));
    ASSERT_TRUE(remote.ok());
    settings.remote_tiers = {std::make_shared<RemoteTier>(*remote, true)};
    auto opened = TieredCache::open(settings, files, clock, log.sink());
    ASSERT_TRUE(opened.ok());
    cache = std::move(*opened);
  }
  // As long as the real one, but the breaker's pause can be jumped over.
  class JumpingClock final : public Clock {
   public:
    std::int64_t now_ns() const override { return real_.now_ns() + jump; }
    std::int64_t steady_ns() const override { return real_.steady_ns() + jump; }
    void sleep_ms(std::int64_t ms) const override { real_.sleep_ms(ms); }
    std::int64_t jump = 0;

   private:
    base::SystemClock real_;
  };
  bool make(const std::string& source) {
    const CacheKey wanted = make_key(source);
    const auto entry = cache->get_or_make(wanted, [&] { return make_entry(wanted); });
    return entry.ok() && (*entry)->cubin == make_entry(wanted).cubin;
  }

  const SigningKey signing_key = SigningKey::generate();
  testing::TemporaryFolder folder;
  base::PosixFileSystem files;
  JumpingClock clock;
  testing::LogRecorder log;
  std::unique_ptr<testing::FaultProxy> proxy;
  std::unique_ptr<TieredCache> cache;
};

TEST_P(Misbehaviour, CostsOneDeadlineAndOneWarningAndEnds) {
  ASSERT_TRUE(make("while all is well"));
  GetParam().begin(*proxy);
  const Stopwatch watch;
  for (const char* source : {"a", "b", "c", "d"}) EXPECT_TRUE(make(source)) << source;
  EXPECT_LT(watch.ms(), kDeadlineMs + kSlackMs);
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ(cache->counters().remotes.at(0).failures, 1u);
  EXPECT_EQ(cache->counters().remotes.at(0).breaker, BreakerState::open);
  proxy->pass();
  clock.jump += Breaker::kFirstPauseMs * 1'000'000;
  EXPECT_TRUE(make("afterwards"));
  EXPECT_EQ(cache->counters().remotes.at(0).breaker, BreakerState::closed);
  EXPECT_TRUE(cache->is_shared(make_key("afterwards")));
}

INSTANTIATE_TEST_SUITE_P(
    Store, Misbehaviour,
    ::testing::Values(Fault{"Refuses", [](testing::FaultProxy& proxy) { proxy.refuse(); }},
                      Fault{"Hangs", [](testing::FaultProxy& proxy) { proxy.hang(); }},
                      Fault{"Resets", [](testing::FaultProxy& proxy) { proxy.reset_mid_reply(2); }},
                      Fault{"Trickles", [](testing::FaultProxy& proxy) { proxy.trickle(); }},
                      Fault{"Babbles",
                            [](testing::FaultProxy& proxy) { proxy.wrong_bytes("HTTP/1.1 200"); }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace chord::cache
