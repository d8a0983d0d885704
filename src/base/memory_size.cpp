// Reads /proc/meminfo, which knows of caches; sysconf does not.
#include "src/base/memory_size.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace chord::base {

std::int64_t free_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string label;
  std::int64_t kib = 0;
  std::string unit;
  while (file >> label >> kib && std::getline(file, unit))
    if (label == "MemAvailable:") return kib * 1024;
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace chord::base
