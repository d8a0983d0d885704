// Which compilers a cache folder or a remote store has entries of. The compiler's identity is part
// of every key, and a hit must not need a compiler: the identity of the last one is looked up here
// instead. A folder keeps a file each; a remote store keeps, for each signer, one signed entry of a
// key of its own, so that the list is checked as everything else that crosses a machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/entry.h"
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

CacheKey compilers_key(const std::string& signer);
Entry compilers_record(const std::string& signer, const std::vector<std::string>& identities);
std::vector<std::string> compilers_of(const Entry& record);

}  // namespace chord::cache
