// A bundle read in its one order: who signed it, what is in it, then entry by entry. Nothing is
// believed before the signature of the list has been checked, and nothing of an entry before its
// hash. Every error names the member and the reason.
#pragma once

#include <cstddef>
#include <string>

#include "cache/bundle/archive_reader.h"
#include "cache/bundle/bundle_manifest.h"
#include "cache/signatures.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

class BundleReader {
 public:
  static Result<BundleReader> open(const std::string& path, const TrustedKeys& trusted,
                                   FileSystem& files);

  const BundleManifest& manifest() const { return manifest_; }
  const std::string& manifest_sha256() const { return manifest_sha256_; }
  const std::string& signer() const { return signer_; }

  // The next member of the manifest with its whole content; false after the last one, when the
  // file has ended, too.
  Result<bool> next(BundleMember& member, std::string& bytes);

  Error refuse(const std::string& member, std::string reason, std::string help = {}) const;

 private:
  BundleReader(std::string path, ArchiveReader archive);
  Status read_manifest(const TrustedKeys& trusted);
  // The next member, if it has this name and is a file.
  Status expect(const std::string& name, ArchiveMember& member);
  Result<std::string> read_small(const std::string& name, std::uint64_t most_bytes);
  std::string why_not_expected(const ArchiveMember& member, const std::string& expected) const;

  std::string path_;
  ArchiveReader archive_;
  BundleManifest manifest_;
  std::string manifest_sha256_;
  std::string signer_;
  std::size_t next_ = 0;
};

}  // namespace chord::cache
