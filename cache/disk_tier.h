// Cubins in a folder: one file per key, in 256 subfolders by the first two digits of its name.
//
// What makes it safe to share between processes, users and machines:
//   publish   whole or not at all (publish.h); readers need no lock
//   trust     root, subfolder and file are checked on every look-up (trust.h), the file by the
//             descriptor it is read from, so that it can not be exchanged in between
//   damage    the reader checks the bytes and calls set_aside: the file moves to bad/, for a person
//             to look at (a bounded number of them), and the key is a miss
//   age       a hit sets the file's modification time: the stamp of the pruner. It is
//             only ever compared with other stamps; a wrong or future one costs no hit
// A look-up makes no folder and needs nothing but to read.
#pragma once

#include <string>

#include "cache/layout.h"
#include "cache/trust.h"
#include "chord/cache_tier.h"
#include "chord/platform.h"

namespace chord::cache {

enum class Access { read_write, read_only };

class DiskTier final : public CacheTier {
 public:
  DiskTier(std::string root, Access access, FileSystem& files, const Clock& clock);

  std::string name() const override { return "folder " + layout_.root; }
  bool is_writable() const override { return access_ == Access::read_write; }
  TierAnswer get(const CacheKey& key) override;
  Status put(const CacheKey& key, std::string_view bytes) override;
  Status remove(const CacheKey& key) override;
  void set_aside(const CacheKey& key, std::string_view reason) override;

  const Layout& layout() const { return layout_; }
  // Makes the root if it is missing; an error when it can not be made or is not trusted.
  Status make_root();
  // Why files of this folder would not be believed; empty when they are or it does not exist.
  std::string why_root_not_trusted() const;

 private:
  TierAnswer check_folder(const std::string& path) const;
  TierAnswer check_folders(const CacheKey& key) const;
  void stamp(const std::string& path, const FileStat& stat) const;

  Layout layout_;
  Access access_;
  Trust trust_;
  FileSystem& files_;
  const Clock& clock_;
};

}  // namespace chord::cache
