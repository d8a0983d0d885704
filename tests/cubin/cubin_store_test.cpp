// From a recipe to a cubin: cache first, compiler once, policy obeyed. The compiler is a stand-in
// that counts; the cache is the real one on a real folder.
#include "src/cubin/cubin_store.h"

#include <gtest/gtest.h>

#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "tests/support/log_recorder.h"
#include "tests/support/temporary_folder.h"

namespace chord::cubin {
namespace {

class CountingCompiler final : public CubinCompiler {
 public:
  explicit CountingCompiler(std::string version) : version_(std::move(version)) {}

  Result<std::string> identity() override {
    if (version_.empty())
      return Error{ErrorCode::unavailable, "open NVRTC", "no library", "install one"};
    return version_;
  }
  Result<CompiledCubin> compile(const CompileRequest& request) override {
    ++compiles;
    if (fails) return Error{ErrorCode::compile_failed, request.name, "line 3: syntax error", ""};
    return CompiledCubin{"cubin of " + request.name + version_, "", 1.5, version_, 168, 0, 0};
  }

  int compiles = 0;
  bool fails = false;

 private:
  std::string version_;
};

class CubinStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<cache::TieredCache> open_cache() {
    cache::CacheSettings settings;
    settings.writable_dir = folder_ / "cache";
    auto cache = cache::TieredCache::open(settings, files_, clock_, log_.sink());
    EXPECT_TRUE(cache.ok());
    return std::move(*cache);
  }

  Recipe recipe(Architecture arch = Architecture::sm_90a) {
    return *pack_recipe(arch, CodeSource::words, ScaleSource::row_major);
  }

  chord::testing::TemporaryFolder folder_;
  chord::testing::LogRecorder log_;
  base::PosixFileSystem files_;
  base::SystemClock clock_;
};

TEST_F(CubinStoreTest, CompilesOnceThenServesFromTheCache) {
  CountingCompiler compiler("NVRTC 13.0.88");
  const auto cache = open_cache();
  CubinStore store(*cache, compiler, JitPolicy::allow, log_.sink());
  bool compiled = false;
  ASSERT_TRUE(store.obtain(recipe(), &compiled).ok());
  EXPECT_TRUE(compiled);
  ASSERT_TRUE(store.obtain(recipe(), &compiled).ok());
  EXPECT_FALSE(compiled);
  EXPECT_EQ(compiler.compiles, 1);
}

TEST_F(CubinStoreTest, AHitNeedsNoCompiler) {
  {
    CountingCompiler compiler("NVRTC 13.0.88");
    const auto cache = open_cache();
    ASSERT_TRUE(CubinStore(*cache, compiler, JitPolicy::allow, {}).obtain(recipe()).ok());
  }
  CountingCompiler none("");
  const auto cache = open_cache();
  CubinStore store(*cache, none, JitPolicy::allow, {});
  const auto entry = store.obtain(recipe());
  ASSERT_TRUE(entry.ok()) << entry.error().message();
  EXPECT_EQ((*entry)->compiler, "NVRTC 13.0.88");
}

TEST_F(CubinStoreTest, AMissWithoutACompilerSaysHowToPrewarm) {
  CountingCompiler none("");
  const auto cache = open_cache();
  const auto entry = CubinStore(*cache, none, JitPolicy::allow, {}).obtain(recipe());
  ASSERT_FALSE(entry.ok());
  EXPECT_NE(entry.error().message().find("chord-prewarm"), std::string::npos);
  EXPECT_NE(entry.error().message().find("pack_words_row_major"), std::string::npos);
}

TEST_F(CubinStoreTest, NeverRefusesAMissAndNamesTheKernel) {
  CountingCompiler compiler("NVRTC 13.0.88");
  const auto cache = open_cache();
  ASSERT_TRUE(CubinStore(*cache, compiler, JitPolicy::allow, {}).obtain(recipe()).ok());
  CubinStore strict(*cache, compiler, JitPolicy::never, {});
  EXPECT_TRUE(strict.obtain(recipe()).ok()) << "a hit is no miss";
  const auto missing = strict.obtain(recipe(Architecture::sm_103a));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::cache_miss);
  EXPECT_NE(missing.error().message().find("sm_103a"), std::string::npos);
  EXPECT_NE(missing.error().message().find("key "), std::string::npos);
  EXPECT_NE(missing.error().message().find("the nearest entry "), std::string::npos);
  EXPECT_NE(missing.error().message().find("differs in arch"), std::string::npos)
      << missing.error().message();
  EXPECT_EQ(compiler.compiles, 1);
}

TEST_F(CubinStoreTest, WarnCompilesAndSaysSo) {
  CountingCompiler compiler("NVRTC 13.0.88");
  const auto cache = open_cache();
  ASSERT_TRUE(CubinStore(*cache, compiler, JitPolicy::warn, log_.sink()).obtain(recipe()).ok());
  EXPECT_TRUE(log_.has(LogLevel::warn, "pack_words_row_major"));
}

TEST_F(CubinStoreTest, AFailedCompilePublishesNothing) {
  CountingCompiler compiler("NVRTC 13.0.88");
  compiler.fails = true;
  const auto cache = open_cache();
  CubinStore store(*cache, compiler, JitPolicy::allow, {});
  const auto entry = store.obtain(recipe());
  ASSERT_FALSE(entry.ok());
  EXPECT_NE(entry.error().message().find("line 3"), std::string::npos);
  EXPECT_EQ(store.find(recipe()), nullptr);
}

TEST_F(CubinStoreTest, AnotherCompilerFindsTheEntriesOfTheFirst) {
  CountingCompiler first("NVRTC 13.0.88"), second("NVRTC 13.1.10");
  const auto cache = open_cache();
  ASSERT_TRUE(CubinStore(*cache, first, JitPolicy::allow, {}).obtain(recipe()).ok());
  CubinStore store(*cache, second, JitPolicy::allow, {});
  ASSERT_TRUE(store.obtain(recipe()).ok());
  EXPECT_EQ(second.compiles, 0);
  ASSERT_TRUE(store.obtain(recipe(Architecture::sm_100a)).ok());
  EXPECT_EQ(second.compiles, 1);
}

TEST_F(CubinStoreTest, AKeyIsUnknownUntilACompilerIsRecorded) {
  CountingCompiler compiler("NVRTC 13.0.88");
  const auto cache = open_cache();
  CubinStore store(*cache, compiler, JitPolicy::allow, {});
  EXPECT_FALSE(store.recorded_key(recipe()).has_value());
  ASSERT_TRUE(store.obtain(recipe()).ok());
  ASSERT_TRUE(store.recorded_key(recipe()).has_value());
  EXPECT_EQ(*store.recorded_key(recipe()), key_of(recipe(), "NVRTC 13.0.88"));
}

}  // namespace
}  // namespace chord::cubin
