// Where things stand in a cache folder (README.md shows the picture). Pure path arithmetic.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cache/key.h"

namespace chord::cache {

struct Layout {
  std::string root;

  // One folder per schema, so that a library leaves another one's entries alone or sweeps them
  // whole.
  std::string entries() const {
    return fmt::format("{}/{}{}", root, kEntriesPrefix, kSchemaVersion);
  }
  std::string shard(std::string_view name) const {
    return fmt::format("{}/{}", entries(), name.substr(0, 2));
  }
  std::string entry(std::string_view name) const { return fmt::format("{}/{}", shard(name), name); }

  std::string bad() const { return root + "/bad"; }
  std::string bad(std::string_view name) const { return fmt::format("{}/bad/{}.bad", root, name); }
  std::string locks() const { return root + "/locks"; }
  std::string lock(std::string_view name) const { return fmt::format("{}/{}.lock", locks(), name); }
  std::string pins() const { return root + "/pins"; }
  std::string compilers() const { return root + "/compilers"; }

  static constexpr std::string_view kEntriesPrefix = "v";
  static constexpr std::string_view kTemporaryPrefix = ".tmp-";
};

}  // namespace chord::cache
