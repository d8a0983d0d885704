// What a deployment needs: the closed list of its keys, as a JSON file. Written after a prewarm;
// read to check a node, and kept in the cache folder's pins/, where it protects its keys from the
// pruner.
//
//   {"schema": 2, "label": "kimi-k2.5 ep8 decode", "compiler": "NVRTC 13.0.88",
//    "coverage": {"keys": 12, "present": 12, "rows": "1:1073741824"},
//    "keys": [{"name": "<32 hex digits>", "label": "sm_90a indexed 4096x7168", "arch": "sm_90a",
//              "cubin_xxh128": "<32 hex digits>", "size": 103424}, ...]}
//
// A key that is not made yet has an empty cubin_xxh128 and size 0. The schema is that of the keys:
// a manifest of an older one is read, too, so that what it pins stays for the library that wrote
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.h"
#include "cache/layout.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

struct ManifestKey {
  std::string name;
  std::string label;
  std::string arch;
  std::string cubin_xxh128;
  std::uint64_t size = 0;  // bytes of the cubin

  bool operator==(const ManifestKey&) const = default;
};

struct Coverage {
  std::uint64_t keys = 0;
  std::uint64_t present = 0;
  std::string rows;  // "MIN:MAX"

  bool operator==(const Coverage&) const = default;
};

struct Manifest {
  std::string label;
  int schema = kSchemaVersion;
  std::string compiler = {};
  Coverage coverage = {};
  std::vector<ManifestKey> keys = {};

  bool operator==(const Manifest&) const = default;
};

std::string to_json(const Manifest& manifest);
// `origin` names the text in errors.
Result<Manifest> parse_manifest(std::string_view json, std::string_view origin);

// The file name of a deployment's pin: one per label and schema, the last one wins.
std::string pin_name(const Manifest& manifest);
// Unreadable ones are named in the log and left out.
std::vector<Manifest> pinned_manifests(const Layout& layout, FileSystem& files, const LogSink& log);

}  // namespace chord::cache
