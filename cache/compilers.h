// Which compilers a cache folder has entries of. The compiler's identity is part of every key, and
// a hit must not need a compiler: the identity of the last one is looked up here instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "cache/trust.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

struct RecordedCompiler {
  std::string identity;
  std::int64_t last_use_ns = 0;
};

FileError record_compiler(const Layout& layout, const std::string& identity, FileSystem& files,
                          const Clock& clock);

// Most recently used first. Records that are not trusted or not readable are left out.
std::vector<RecordedCompiler> recorded_compilers(const Layout& layout, Trust trust,
                                                 FileSystem& files);

}  // namespace chord::cache
