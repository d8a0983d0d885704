// What most tests of the cache need: an empty folder, files, a clock, a log, keys and entries.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cache/entry.h"
#include "cache/key.h"
#include "cache/layout.h"
#include "cache/signatures.h"
#include "cache/tiered_cache.h"
#include "src/base/posix_file_system.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/log_recorder.h"
#include "tests/support/temporary_folder.h"

namespace chord::cache {

inline CacheKey make_key(const std::string& source, const std::string& arch = "sm_90a") {
  return KeyBuilder().field("arch", arch).field("source", source).finish();
}

inline CacheKey numbered_key(int number) { return make_key("kernel " + std::to_string(number)); }

inline Entry make_entry(const CacheKey& key, std::size_t cubin_bytes = 1000) {
  Entry entry;
  entry.key = key;
  entry.kernel_name = "chord_kernel";
  entry.arch = "sm_90a";
  entry.compiler = "NVRTC 13.0.88";
  entry.compile_ms = 104.25;
  entry.threads = 384;
  entry.shared_bytes = 123456;
  entry.registers = 168;
  entry.cluster = 1;
  // Not one repeated byte: a cut or shifted cubin must not look like itself.
  while (entry.cubin.size() < cubin_bytes)
    entry.cubin += content_name(key.name + std::to_string(entry.cubin.size()));
  entry.cubin.resize(cubin_bytes);
  return entry;
}

// Of a machine that signs with `key` and trusts it; a machine without it trusts nobody.
inline Signatures signatures_of(const SigningKey& key,
                                SignaturePolicy policy = SignaturePolicy::accept_local) {
  TrustedKeys trusted;
  trusted.add(key.signer(), "a test's key");
  return Signatures(policy, trusted, key);
}

inline Entry signed_entry(const CacheKey& key, const SigningKey& signer,
                          std::size_t cubin_bytes = 1000) {
  Entry entry = make_entry(key, cubin_bytes);
  signatures_of(signer).sign(entry);
  return entry;
}

class CacheTest : public ::testing::Test {
 protected:
  std::string root() const { return folder / "cache"; }
  Layout layout() const { return Layout{root()}; }

  CacheSettings settings() const {
    CacheSettings settings;
    settings.writable_dir = root();
    settings.wait_ms = 2000;
    return settings;
  }
  std::unique_ptr<TieredCache> open(const CacheSettings& settings) {
    auto cache = TieredCache::open(settings, files, clock, log.sink());
    EXPECT_TRUE(cache.ok()) << cache.error().message();
    return std::move(cache).value();
  }
  // A new object stands for a new process: its memory is empty.
  std::unique_ptr<TieredCache> open() { return open(settings()); }

  TieredCache::Maker maker(const CacheKey& key, std::size_t cubin_bytes = 1000) {
    return [this, key, cubin_bytes]() -> Result<Entry> {
      ++compiles;
      return make_entry(key, cubin_bytes);
    };
  }
  void fill(const std::vector<CacheKey>& keys, std::size_t cubin_bytes = 1000) {
    const auto cache = open();
    for (const CacheKey& key : keys)
      ASSERT_TRUE(cache->get_or_make(key, maker(key, cubin_bytes)).ok());
    compiles = 0;
  }
  static std::string cubin_of(const CacheKey& key) { return make_entry(key).cubin; }

  const SigningKey signing_key = SigningKey::generate();
  testing::TemporaryFolder folder;
  base::PosixFileSystem real;
  testing::FaultFileSystem files{real};
  testing::FakeClock clock;
  testing::LogRecorder log;
  std::atomic<int> compiles{0};
};

}  // namespace chord::cache
