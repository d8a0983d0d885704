// Writes a bundle: the entries of a deployment as one signed file, for an image layer or a bucket.
//
//   auto report = export_bundle(manifest, entries_of({&folder}), key, "kimi.chordpack", {}, files);
//
// The same entries and key give the same bytes. One entry at a time is in memory: each is read
// twice, to be hashed for the list that comes first, and to be written. The file appears whole or
// not at all; what was there is replaced. Its mode is that of any new file of the user.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/manifest.h"
#include "cache/signatures.h"
#include "chord/cache_tier.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

// A serialized entry by the name of its key.
using EntrySource = std::function<TierAnswer(const std::string& name)>;

// The first folder that has a whole entry of that name. The folders outlive it.
EntrySource entries_of(std::vector<DiskTier*> folders);

struct ExportOptions {
  bool allow_partial = false;  // leave out what no folder has; the manifest's coverage says so
  bool sign_unsigned = true;   // false where the own folders have to be signed: then it is missing
};

struct MissingEntry {
  ManifestKey key;
  std::string reason;
};

struct ExportReport {
  std::uint64_t entries = 0;
  std::uint64_t entry_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t signed_here = 0;      // entries that nobody had signed, signed by this key
  std::set<std::string> signers;      // of the entries: whoever imports has to trust them all
  std::vector<MissingEntry> missing;  // only where a part is allowed
};

// An entry whose signature is not its signer's, or that is damaged, counts as missing.
Result<ExportReport> export_bundle(const Manifest& manifest, const EntrySource& source,
                                   const SigningKey& key, const std::string& path,
                                   const ExportOptions& options, FileSystem& files);

}  // namespace chord::cache
