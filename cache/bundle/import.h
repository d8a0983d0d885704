// Takes the entries of a bundle into a cache.
//
//   auto report = import_bundle("kimi.chordpack", signatures, {}, sink_of(cache), files);
//
// The file is read twice. First everything is checked and nothing stored: the signature of the list
// by a trusted key, then every member's name, size, hash, entry, signature and architecture. One
// wrong member refuses the whole bundle. Then entry by entry is stored, its hash checked again; an
// entry that is stored already is skipped, so that an import that was killed goes on where it
// stopped. The manifest is pinned last: a pin stands for entries that are there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/manifest.h"
#include "cache/signatures.h"
#include "cache/tiered_cache.h"
#include "chord/cache_tier.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

// Where the entries go.
struct ImportSink {
  std::function<bool(const CacheKey& key)> is_stored;
  std::function<Status(const CacheKey& key, std::string_view bytes)> store;
  std::function<Status(const Manifest& manifest)> pin;
  // Entries that were evicted so far. If some were while importing, it is made sure that none of
  // the bundle was among them.
  std::function<std::uint64_t()> evictions;
};

ImportSink sink_of(TieredCache& cache);

struct ImportOptions {
  // An entry for another one refuses the bundle. Empty: any.
  std::vector<std::string> architectures;
  // Told of every entry that was found good, in the first reading.
  std::function<void(const Entry&)> seen = {};
};

struct ImportReport {
  std::string label;
  std::string compiler;  // to be compared with the own one: other NVRTC, other keys
  Coverage coverage;
  std::string signer;
  std::string signer_comment;  // as in the file of trusted keys
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of the serialized entries
  std::uint64_t imported = 0;
  std::uint64_t skipped = 0;  // were stored already
  Manifest manifest;
};

// The first reading alone: imported and skipped are 0.
Result<ImportReport> check_bundle(const std::string& path, const Signatures& signatures,
                                  const ImportOptions& options, FileSystem& files);

Result<ImportReport> import_bundle(const std::string& path, const Signatures& signatures,
                                   const ImportOptions& options, const ImportSink& sink,
                                   FileSystem& files);

}  // namespace chord::cache
