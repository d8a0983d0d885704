// What is in a bundle of cubins, and who says so. A bundle is a tar.zst whose members are, in this
// order: manifest.json, manifest.sig, and one entries/<name> per entry, ascending by name.
//
//   manifest.json = {"format": 1, "manifest": (cache/manifest.h),
//                    "members": [{"name": "<32 hex digits>", "size": 104112,
//                                 "sha256": "<64 hex digits>"}, ...]}
//   manifest.sig  = signer "\n" signature "\n"       as in cache/signatures.h
//   signed text   = "chord bundle manifest 1\n" and the bytes of manifest.json
//
// The signature vouches for the list, the list's hashes for the entries. Every entry is signed by
// itself, too, so that what a bundle brought can go on to another machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/manifest.h"
#include "cache/signatures.h"
#include "chord/status.h"

namespace chord::cache {

inline constexpr int kBundleFormat = 1;

// A reader trusts no number of a file beyond these; a writer makes no bundle beyond them.
struct BundleLimits {
  static constexpr std::uint64_t manifest_bytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t signature_bytes = 4096;
  static constexpr std::uint64_t entry_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t all_entries_bytes = std::uint64_t{16} << 30;
  static constexpr std::size_t members = 65536;
};

inline constexpr const char* kManifestMember = "manifest.json";
inline constexpr const char* kSignatureMember = "manifest.sig";
inline constexpr const char* kEntriesFolder = "entries/";

struct BundleMember {
  std::string name;  // of the entry; the member is entries/<name>
  std::uint64_t size = 0;
  std::string sha256;

  std::string path() const { return kEntriesFolder + name; }
  bool operator==(const BundleMember&) const = default;
};

struct BundleManifest {
  Manifest deployment;
  std::vector<BundleMember> members;  // ascending by name

  bool operator==(const BundleManifest&) const = default;
};

std::string to_json(const BundleManifest& manifest);
// Checks every bound, the order of the members, and that the deployment lists each.
Result<BundleManifest> parse_bundle_manifest(std::string_view json);

std::string sign_manifest(std::string_view json, const SigningKey& key);  // manifest.sig
// The signer, if it is a trusted one and this is its signature of this manifest.
Result<std::string> check_manifest(std::string_view json, std::string_view signature,
                                   const TrustedKeys& trusted);

}  // namespace chord::cache
