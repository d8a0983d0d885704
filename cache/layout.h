// Where things stand in a cache folder (README.md shows the picture). Pure path arithmetic.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

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

  // The subfolders of a schema's folder: the first two digits of the names of entries.
  static bool is_shard(std::string_view name) {
    return name.size() == 2 && name.find_first_not_of("0123456789abcdef") == name.npos;
  }
  // The schema whose entries a folder in the root holds; -1 if its name is of something else.
  static int schema_of(std::string_view name) {
    if (!name.starts_with(kEntriesPrefix)) return -1;
    name.remove_prefix(kEntriesPrefix.size());
    int schema = -1;
    const auto [stop, problem] = std::from_chars(name.data(), name.data() + name.size(), schema);
    return problem == std::errc{} && stop == name.data() + name.size() ? schema : -1;
  }

  static constexpr std::string_view kEntriesPrefix = "v";
  static constexpr std::string_view kTemporaryPrefix = ".tmp-";
};

}  // namespace chord::cache
