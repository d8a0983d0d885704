// Which device files a kernel is made of, and their digest. Only the files that the entry includes,
// directly or not, reach the compiler and the key, so that a change of one kernel leaves the cubins
// of another alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chord/status.h"

namespace chord::source {

struct DeviceFile {
  std::string_view name;
  std::string_view text;
};

// The files embedded in this library.
const std::vector<DeviceFile>& embedded_device_files();

// The files that `source` includes, transitively, sorted by name. An include that is not among
// `files` is an error: device text is self-contained.
Result<std::vector<DeviceFile>> included_files(std::string_view source,
                                               const std::vector<DeviceFile>& files);

// XXH3-128 over names and texts, in hex.
std::string digest(const std::vector<DeviceFile>& files);

}  // namespace chord::source
