// Remote tiers behind a TieredCache: what is believed, what a failing one costs, who makes a key.
#include "cache/remotes.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

// A store in this process that several caches share, and that fails as told.
class SharedStore final : public CacheTier {
 public:
  explicit SharedStore(bool may_write = true) : may_write_(may_write) {}

  std::string name() const override { return "store"; }
  bool is_writable() const override { return may_write_; }
  TierAnswer get(const CacheKey& key) override {
    const std::lock_guard lock(mutex);
    ++gets;
    if (!failure.empty()) return {Lookup::failed, {}, failure};
    const auto found = objects.find(key.name);
    if (found == objects.end()) return {Lookup::absent, {}, "not there"};
    return {Lookup::value, found->second, {}};
  }
  Status put(const CacheKey& key, std::string_view bytes) override {
    const std::lock_guard lock(mutex);
    ++puts;
    if (!failure.empty()) return Error{ErrorCode::unavailable, "put", failure, ""};
    if (is_full) return Error{ErrorCode::unavailable, "put", "out of memory", ""};
    objects[key.name] = bytes;
    return {};
  }
  Status remove(const CacheKey& key) override {
    const std::lock_guard lock(mutex);
    objects.erase(key.name);
    return {};
  }

  std::mutex mutex;
  std::map<std::string, std::string> objects;
  std::string failure;
  bool is_full = false;
  int gets = 0;
  int puts = 0;

 private:
  bool may_write_;
};

class StubLeases final : public LeaseService {
 public:
  class Held final : public KeyLease {
   public:
    explicit Held(StubLeases& of) : of_(of) {}
    ~Held() override { of_.is_held = false; }

   private:
    StubLeases& of_;
  };

  LeaseAnswer try_take(const CacheKey&) override {
    ++tries;
    if (!failure.empty()) return {nullptr, {}, failure};
    if (on_try) on_try();
    if (is_held.exchange(true)) return {nullptr, "pid 1 on another machine", {}};
    return {std::make_unique<Held>(*this), {}, {}};
  }

  std::atomic<bool> is_held{false};
  std::atomic<int> tries{0};
  std::string failure;
  std::function<void()> on_try;
};

class RemotesTest : public CacheTest {
 protected:
  CacheSettings with_store() {
    CacheSettings settings = CacheTest::settings();
    settings.remote_tiers = {store};
    settings.signatures = signatures_of(signing_key);
    return settings;
  }
  void put(const CacheKey& key, const std::string& bytes) { store->objects[key.name] = bytes; }

  std::uint64_t count_of(const TieredCache& cache, MissReason reason) {
    return cache.counters().no_value[static_cast<std::size_t>(reason)];
  }

  std::shared_ptr<SharedStore> store = std::make_shared<SharedStore>();
  std::shared_ptr<StubLeases> leases = std::make_shared<StubLeases>();
};

TEST_F(RemotesTest, WhatOneMachineMadeAnotherOneFinds) {
  const CacheKey key = make_key("a");
  ASSERT_TRUE(open(with_store())->get_or_make(key, maker(key)).ok());
  CacheSettings other = with_store();
  other.writable_dir = folder / "other";
  const auto cache = open(other);
  const auto entry = cache->get_or_make(key, maker(key));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ((*entry)->cubin, cubin_of(key));
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(cache->counters().remote_hits, 1u);
  // Kept in the folder: the store is not asked again.
  store->failure = "down";
  EXPECT_NE(open(other)->find(key), nullptr);
}

TEST_F(RemotesTest, EveryEntryThatIsNotVouchedForIsAMissWithItsReason) {
  const CacheKey key = make_key("a");
  const SigningKey stranger = SigningKey::generate();
  Entry swapped = signed_entry(key, signing_key);
  swapped.signature = signed_entry(make_key("b"), signing_key).signature;
  std::string older = serialize(signed_entry(key, signing_key));
  older.replace(0, 13, "chord cubin 1");
  const std::string good = serialize(signed_entry(key, signing_key));
  const std::pair<MissReason, std::string> bad[] = {
      {MissReason::not_signed, serialize(make_entry(key))},
      {MissReason::unknown_signer, serialize(signed_entry(key, stranger))},
      {MissReason::bad_signature, serialize(swapped)},
      {MissReason::older_schema, older},
      {MissReason::damaged, good.substr(0, good.size() / 2)},
      // Replayed: a whole signed entry of another key in this key's place.
      {MissReason::other_key, serialize(signed_entry(make_key("b"), signing_key))},
  };
  for (const auto& [reason, bytes] : bad) {
    SCOPED_TRACE(name(reason));
    put(key, bytes);
    std::vector<std::string> events;
    CacheSettings settings = with_store();
    settings.writable_dir = folder / name(reason);
    settings.on_event = [&](const CacheEvent& event) {
      if (event.kind == CacheEvent::Kind::bad_entry) events.emplace_back(name(event.reason));
    };
    const auto cache = open(settings);
    EXPECT_EQ(cache->find(key), nullptr);
    EXPECT_EQ(count_of(*cache, reason), 1u);
    EXPECT_EQ(events, std::vector<std::string>{name(reason)});
    EXPECT_EQ(cache->counters().remote_hits, 0u);
    const auto tiers = cache->inquire(key);
    ASSERT_EQ(tiers.size(), 2u);
    EXPECT_EQ(tiers[1].reason, reason);
    EXPECT_FALSE(tiers[1].text.empty());
    // And the kernel is made here.
    compiles = 0;
    ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
    EXPECT_EQ(compiles, 1);
  }
}

TEST_F(RemotesTest, ANodeThatOnlyReadsWritesNothing) {
  store = std::make_shared<SharedStore>(false);
  const CacheKey key = make_key("a");
  const auto cache = open(with_store());
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(store->puts, 0);
  EXPECT_FALSE(cache->may_share());
}

TEST_F(RemotesTest, ShareWritesOnlyWhatIsNotThere) {
  const CacheKey key = make_key("a");
  CacheSettings alone = settings();
  alone.signatures = signatures_of(signing_key);
  ASSERT_TRUE(open(alone)->get_or_make(key, maker(key)).ok());
  const auto cache = open(with_store());
  EXPECT_EQ(cache->share(*cache->find(key)), 1);
  EXPECT_EQ(cache->share(*cache->find(key)), 0);
  EXPECT_TRUE(cache->is_shared(key));
  EXPECT_EQ(store->puts, 1);
}

TEST_F(RemotesTest, AFailureWhileWritingCostsOneWarningAndNoKernel) {
  const auto cache = open(with_store());
  ASSERT_EQ(cache->find(make_key("x")), nullptr);
  store->failure = "disk full";
  for (const char* source : {"a", "b", "c"})
    ASSERT_TRUE(cache->get_or_make(make_key(source), maker(make_key(source))).ok());
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ(cache->counters().remotes[0].failures, 1u) << "left alone after the first";
}

TEST_F(RemotesTest, ANewMachineLearnsTheCompilersFromTheStore) {
  const auto maker_cache = open(with_store());
  maker_cache->record_compiler("NVRTC 13.0.88");
  maker_cache->record_compiler("NVRTC 13.1.5");
  CacheSettings fresh = with_store();
  fresh.writable_dir = folder / "fresh";
  const auto cache = open(fresh);
  EXPECT_TRUE(cache->compiler_identities().empty());
  const std::vector<std::string> expected{"NVRTC 13.1.5", "NVRTC 13.0.88"};
  EXPECT_EQ(cache->remote_compiler_identities(), expected);
  const int gets = store->gets;
  EXPECT_EQ(cache->remote_compiler_identities(), expected);
  EXPECT_EQ(store->gets, gets) << "asked once a minute at most";
}

TEST_F(RemotesTest, CompilersOfAStrangerAreNotBelieved) {
  Entry record = signed_entry(make_key("a"), SigningKey::generate());
  CacheSettings stranger = with_store();
  stranger.signatures = signatures_of(SigningKey::generate());
  open(stranger)->record_compiler("NVRTC 99.9");
  EXPECT_TRUE(open(with_store())->remote_compiler_identities().empty());
}

TEST_F(RemotesTest, TheHolderOfTheLeaseMakesAndTheOthersTakeWhatItMade) {
  const CacheKey key = make_key("a");
  CacheSettings waiting = with_store();
  waiting.leases = leases;
  leases->is_held = true;
  int polls = 0;
  leases->on_try = [&] {
    if (++polls == 3) store->objects[key.name] = serialize(signed_entry(key, signing_key));
  };
  const auto cache = open(waiting);
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 0);
  EXPECT_EQ(cache->counters().waits, 1u);
  EXPECT_TRUE(log.has(LogLevel::info, "pid 1 on another machine"));
}

TEST_F(RemotesTest, ALeaseThatComesFreeIsTaken) {
  const CacheKey key = make_key("a");
  CacheSettings waiting = with_store();
  waiting.leases = leases;
  leases->is_held = true;
  int polls = 0;
  leases->on_try = [&] {
    if (++polls == 3) leases->is_held = false;
  };
  ASSERT_TRUE(open(waiting)->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
  EXPECT_FALSE(leases->is_held) << "given back";
}

TEST_F(RemotesTest, TheWaitForALeaseEnds) {
  const CacheKey key = make_key("a");
  CacheSettings waiting = with_store();
  waiting.leases = leases;
  leases->is_held = true;
  const std::int64_t start = clock.steady_ns();
  ASSERT_TRUE(open(waiting)->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
  EXPECT_LE(clock.steady_ns() - start, 2100 * std::int64_t{1'000'000});
  EXPECT_TRUE(log.has(LogLevel::warn, "going on without it"));
}

TEST_F(RemotesTest, AStoreThatIsDownIsNotAskedForALease) {
  CacheSettings settings = with_store();
  settings.leases = leases;
  store->failure = "down";
  const CacheKey key = make_key("a");
  ASSERT_TRUE(open(settings)->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(leases->tries, 0);
  EXPECT_EQ(store->gets, 1);
  EXPECT_EQ(store->puts, 0) << "one deadline in all";
}

TEST_F(RemotesTest, ALeaseThatCanNotBeAskedForIsDoneWithout) {
  CacheSettings settings = with_store();
  settings.leases = leases;
  leases->failure = "connection reset";
  const CacheKey key = make_key("a");
  const auto cache = open(settings);
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ(cache->counters().remotes[0].write_breaker, BreakerState::open);
}

TEST_F(RemotesTest, AStoreThatIsFullIsStillReadFrom) {
  const CacheKey key = make_key("there");
  put(key, serialize(signed_entry(key, signing_key)));
  store->is_full = true;
  const auto cache = open(with_store());
  ASSERT_TRUE(cache->get_or_make(make_key("a"), maker(make_key("a"))).ok());
  EXPECT_EQ(cache->counters().remotes[0].write_breaker, BreakerState::open);
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(log.warnings().size(), 1u);
}

TEST_F(RemotesTest, WhatIsThereAndMayNotBeLoadedIsWrittenAnew) {
  const CacheKey key = make_key("a");
  put(key, serialize(signed_entry(key, SigningKey::generate())));
  CacheSettings alone = settings();
  ASSERT_TRUE(open(alone)->get_or_make(key, maker(key)).ok());
  const auto cache = open(with_store());
  EXPECT_EQ(cache->share(*cache->vouch(cache->find(key))), 1);
  EXPECT_TRUE(cache->is_shared(key));
}

TEST_F(RemotesTest, AnEntryWhoseSignerIsNoLongerTrustedIsSignedAnew) {
  const CacheKey key = make_key("a");
  CacheSettings old_key = settings();
  old_key.signatures = signatures_of(SigningKey::generate());
  ASSERT_TRUE(open(old_key)->get_or_make(key, maker(key)).ok());
  const auto cache = open(with_store());
  EXPECT_EQ(cache->vouch(cache->find(key))->signer, signing_key.signer());
}

TEST_F(RemotesTest, LookingAloneKeepsNothingSoThatFetchingStillFillsTheFolder) {
  const CacheKey key = make_key("a");
  put(key, serialize(signed_entry(key, signing_key)));
  const auto cache = open(with_store());
  EXPECT_NE(cache->find(key), nullptr);
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_NE(cache->fetch(key), nullptr);
  EXPECT_TRUE(cache->is_stored(key));
}

TEST_F(RemotesTest, CoverageLooksInEveryTier) {
  CacheSettings alone = settings();
  alone.signatures = signatures_of(signing_key);
  const CacheKey on_disk = make_key("disk"), in_store = make_key("store"), nowhere = make_key("no");
  ASSERT_TRUE(open(alone)->get_or_make(on_disk, maker(on_disk)).ok());
  put(in_store, serialize(signed_entry(in_store, signing_key)));
  Manifest manifest{.label = "three"};
  for (const CacheKey& key : {on_disk, in_store, nowhere})
    manifest.keys.push_back({key.name, "label of " + key.name, "sm_90a", "", 0});
  const CoverageReport report = open(with_store())->coverage(manifest);
  EXPECT_EQ(report.keys, 3u);
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].name, nowhere.name);
}

}  // namespace
}  // namespace chord::cache
