// Pins: manifests in a cache folder's pins/. The pruner keeps the entries that they list. A
// deployment is pinned under its label, a single kernel under its key; a pin of one key is a
// manifest with one key.
//
//   pins/<content name of the label>.json
//   pins/key-<name of the key>.json
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cache/layout.h"
#include "cache/manifest.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

// Both make the folder if it is missing, refuse one that is not trusted, replace an earlier pin of
// the same label or key, and answer the path of the pin. The entries need not be there yet.
Result<std::string> pin_manifest(const Layout& layout, const Manifest& manifest, FileSystem& files,
                                 const Clock& clock);
Result<std::string> pin_key(const Layout& layout, const ManifestKey& key,
                            const std::string& compiler, FileSystem& files, const Clock& clock);

// By the label of a manifest or the name of a single key. An error when no such pin is there.
Status unpin(const Layout& layout, const std::string& label_or_key, FileSystem& files);

struct Pin {
  std::string path;
  std::string label;
  std::uint64_t keys = 0;
  std::uint64_t present = 0;  // keys with an entry in the folder, and the bytes of these
  std::uint64_t bytes_present = 0;
};

// In the order of their file names. Unreadable ones are named in the log and left out.
std::vector<Pin> list_pins(const Layout& layout, FileSystem& files, const LogSink& log);

// What the pruner must keep. Pins of every schema count: their keys have names of their own.
struct PinnedNames {
  std::unordered_set<std::string> names;
  std::string unreadable;  // why some may be missing for the moment; empty: these are all
};

// A pin that is damaged, or that this user may not read, protects nothing and is named in the log.
PinnedNames pinned_names(const Layout& layout, FileSystem& files, const LogSink& log);

}  // namespace chord::cache
