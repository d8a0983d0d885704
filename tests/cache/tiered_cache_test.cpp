// Finding, making and publishing through the whole cache.
#include "cache/tiered_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cache/cache_fixture.h"

namespace chord::cache {
namespace {

class TieredCacheTest : public CacheTest {};

TEST_F(TieredCacheTest, MadeOnceFoundByTheNextProcess) {
  const CacheKey key = make_key("a");
  ASSERT_TRUE(open()->get_or_make(key, maker(key)).ok());
  const auto cache = open();
  const auto entry = cache->find(key);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->cubin, cubin_of(key));
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(cache->counters().disk_hits, 1u);
  EXPECT_EQ(cache->find(key), entry);
  EXPECT_EQ(cache->counters().memory_hits, 1u);
}

TEST_F(TieredCacheTest, FolderIsPrivateAndHoldsOneFilePerEntry) {
  const CacheKey key = make_key("a");
  fill({key});
  struct stat stat {};
  ASSERT_EQ(::stat(root().c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mode & 0777, 0700u);
  std::vector<std::string> regular;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
    if (entry.is_regular_file() && entry.path().filename() != "prune.lock")
      regular.push_back(entry.path());
  EXPECT_EQ(regular, std::vector<std::string>{layout().entry(key.name)});
}

TEST_F(TieredCacheTest, OpenAndFindMakeNothing) {
  const auto cache = open();
  EXPECT_EQ(cache->find(make_key("a")), nullptr);
  EXPECT_TRUE(cache->compiler_identities().empty());
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_EQ(cache->counters().misses, 1u);
}

TEST_F(TieredCacheTest, AFailingMakerPublishesNothing) {
  const CacheKey key = make_key("int main( {");
  const auto cache = open();
  const auto answer = cache->get_or_make(key, []() -> Result<Entry> {
    return Error{ErrorCode::compile_failed, "compile", "kernel.cu(1): error: expected ')'", ""};
  });
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("kernel.cu(1)"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(layout().entry(key.name)));
  EXPECT_TRUE(std::filesystem::is_empty(layout().locks()));
  EXPECT_EQ(cache->counters().compiles, 0u);
  EXPECT_TRUE(cache->get_or_make(key, maker(key)).ok());
}

TEST_F(TieredCacheTest, AThrowingMakerIsAnError) {
  const CacheKey key = make_key("a");
  const auto cache = open();
  const auto answer =
      cache->get_or_make(key, []() -> Result<Entry> { throw std::runtime_error("boom"); });
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("boom"), std::string::npos);
  EXPECT_TRUE(cache->get_or_make(key, maker(key)).ok());
}

TEST_F(TieredCacheTest, AMakersEntryOfAnotherKeyIsRefused) {
  const auto cache = open();
  const CacheKey key = make_key("a");
  const auto answer = cache->get_or_make(key, maker(make_key("b")));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::internal);
  EXPECT_FALSE(std::filesystem::exists(layout().entry(key.name)));
}

TEST_F(TieredCacheTest, SixteenThreadsMakeAKeyOnce) {
  const CacheKey key = make_key("a");
  const auto cache = open();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      const auto answer = cache->get_or_make(key, [&]() -> Result<Entry> {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return maker(key)();
      });
      right += answer.ok() && (*answer)->cubin == cubin_of(key);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(compiles, 1);
}

TEST_F(TieredCacheTest, ThreadsThatWaitGetTheMakersError) {
  const CacheKey key = make_key("a");
  const auto cache = open();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto answer = cache->get_or_make(key, []() -> Result<Entry> {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return Error{ErrorCode::compile_failed, "compile", "no", ""};
      });
      failures += !answer.ok() && answer.error().code == ErrorCode::compile_failed;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 8);
}

TEST_F(TieredCacheTest, AForcedCollisionOfNamesIsAMiss) {
  const auto one_name = [](std::string_view) { return std::string(32, 'c'); };
  const CacheKey a = KeyBuilder(one_name).field("source", "a").finish();
  const CacheKey b = KeyBuilder(one_name).field("source", "b").finish();
  ASSERT_EQ(a.name, b.name);
  fill({a});
  const auto cache = open();
  EXPECT_EQ(cache->find(b), nullptr);
  EXPECT_EQ(cache->counters().bad_entries, 1u);
  const auto made = cache->get_or_make(b, maker(b));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->key.text, b.text);
  EXPECT_EQ(cache->find(a), nullptr);  // in memory and on disk the name now holds b
}

TEST_F(TieredCacheTest, EveryTimeStampHits) {
  const CacheKey key = make_key("a");
  fill({key});
  const std::int64_t year_2000 = 946'684'800 * testing::FakeClock::kSecond;
  for (const std::int64_t time : {std::int64_t{0}, year_2000, 4 * clock.now_ns()}) {
    ASSERT_FALSE(real.touch(layout().entry(key.name), time));
    EXPECT_NE(open()->find(key), nullptr) << time;
  }
}

TEST_F(TieredCacheTest, ReadonlyFolderIsFoundAfterTheWritableOne) {
  const CacheKey key = make_key("a");
  fill({key});
  CacheSettings other = settings();
  other.writable_dir = folder / "other";
  other.readonly_dirs = {root()};
  const auto cache = open(other);
  ASSERT_NE(cache->find(key), nullptr);
  EXPECT_EQ(cache->counters().readonly_hits, 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_F(TieredCacheTest, MissingReadonlyFolderIsNamed) {
  CacheSettings with_missing = settings();
  with_missing.readonly_dirs = {folder / "nowhere"};
  open(with_missing);
  EXPECT_TRUE(log.has(LogLevel::warn, folder / "nowhere"));
}

TEST_F(TieredCacheTest, StoredMeansInAFolderNotInMemory) {
  const CacheKey key = make_key("a");
  const auto cache = open();
  ASSERT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_TRUE(cache->is_stored(key));
  EXPECT_FALSE(cache->is_stored(make_key("b")));
  std::filesystem::remove(layout().entry(key.name));
  EXPECT_NE(cache->find(key), nullptr) << "memory still has it";
  EXPECT_FALSE(cache->is_stored(key));
}

TEST_F(TieredCacheTest, AManifestReplacesNothingButAFile) {
  const auto cache = open();
  ASSERT_EQ(::symlink("/dev/null", (folder / "link").c_str()), 0);
  for (const std::string& path : {folder / "link", std::string("/dev/null"), folder / ""})
    EXPECT_FALSE(cache->write_manifest(Manifest{}, path).ok()) << path;
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(cache->write_manifest(Manifest{}, folder / "manifest.json").ok());
  EXPECT_TRUE(cache->write_manifest(Manifest{}, folder / "manifest.json").ok());
}

TEST_F(TieredCacheTest, CompilersAreRememberedMostRecentFirst) {
  const auto cache = open();
  for (const char* identity : {"NVRTC 12.9", "NVRTC 13.0", "NVRTC 12.9"}) {
    clock.advance_s(10);
    cache->record_compiler(identity);
  }
  const std::vector<std::string> expected{"NVRTC 12.9", "NVRTC 13.0"};
  EXPECT_EQ(open()->compiler_identities(), expected);
  CacheSettings other;
  other.readonly_dirs = {root()};
  EXPECT_EQ(open(other)->compiler_identities(), expected);
}

TEST_F(TieredCacheTest, AdoptsAnEntryOfTheKeyAndRefusesOthers) {
  const CacheKey key = make_key("a", "sm_90a");
  const std::string bytes = serialize(signed_entry(key, signing_key));
  CacheSettings trusting = settings();
  trusting.signatures = signatures_of(signing_key);
  const auto cache = open(trusting);
  const Status refused = cache->adopt(make_key("a", "sm_100a"), bytes);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("arch"), std::string::npos);
  EXPECT_FALSE(cache->adopt(key, bytes.substr(1)).ok());
  EXPECT_FALSE(cache->adopt(key, serialize(make_entry(key))).ok()) << "it is not signed";
  EXPECT_FALSE(std::filesystem::exists(layout().entry(key.name)));
  ASSERT_TRUE(cache->adopt(key, bytes).ok());
  EXPECT_NE(open()->find(key), nullptr);
}

TEST_F(TieredCacheTest, NearestEntryNamesTheFieldThatDiffers) {
  fill({make_key("a", "sm_90a"), make_key("b", "sm_90a")});
  const auto nearest = open()->nearest(make_key("a", "sm_100a"));
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->name, make_key("a", "sm_90a").name);
  EXPECT_EQ(nearest->differing_fields, std::vector<std::string>{"arch"});
}

class RemoteStub final : public CacheTier {
 public:
  std::string name() const override { return "remote stub"; }
  bool is_writable() const override { return true; }
  TierAnswer get(const CacheKey&) override {
    ++gets;
    return answer;
  }
  Status put(const CacheKey&, std::string_view bytes) override {
    ++puts;
    answer = {Lookup::value, std::string(bytes), {}};
    return {};
  }
  Status remove(const CacheKey&) override { return {}; }

  TierAnswer answer;
  int gets = 0;
  int puts = 0;
};

TEST_F(TieredCacheTest, RemoteHitFillsTheFolderOnlyWhenAKernelIsWanted) {
  const CacheKey key = make_key("a");
  const auto remote = std::make_shared<RemoteStub>();
  remote->answer = {Lookup::value, serialize(signed_entry(key, signing_key)), {}};
  CacheSettings with_remote = settings();
  with_remote.signatures = signatures_of(signing_key);
  with_remote.remote_tiers = {remote};
  EXPECT_NE(open(with_remote)->find(key), nullptr);
  EXPECT_FALSE(std::filesystem::exists(root()));
  const auto cache = open(with_remote);
  EXPECT_TRUE(cache->get_or_make(key, maker(key)).ok());
  EXPECT_EQ(compiles, 0);
  EXPECT_EQ(cache->counters().remote_hits, 1u);
  EXPECT_TRUE(std::filesystem::exists(layout().entry(key.name)));
}

TEST_F(TieredCacheTest, AFailingRemoteIsNamedOnceAndLeftAloneForAWhile) {
  const auto remote = std::make_shared<RemoteStub>();
  remote->answer = {Lookup::failed, {}, "connection refused"};
  CacheSettings with_remote = settings();
  with_remote.remote_tiers = {remote};
  const auto cache = open(with_remote);
  for (const char* source : {"a", "b", "c"})
    EXPECT_TRUE(cache->get_or_make(make_key(source), maker(make_key(source))).ok());
  EXPECT_EQ(remote->gets, 1);
  EXPECT_EQ(log.warnings().size(), 1u);
  EXPECT_EQ(cache->counters().remotes.at(0).breaker, BreakerState::open);
  clock.advance_s(60);
  remote->answer = {};
  EXPECT_EQ(cache->find(make_key("d")), nullptr);
  EXPECT_EQ(remote->gets, 2);
  EXPECT_EQ(cache->counters().remotes.at(0).breaker, BreakerState::closed);
  EXPECT_TRUE(log.has(LogLevel::info, "answers again"));
}

}  // namespace
}  // namespace chord::cache
