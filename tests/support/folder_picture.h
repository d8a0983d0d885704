// Names, sizes, modes and times of all that a folder holds: equal before and after means that
// nothing was changed.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

namespace chord::testing {

inline std::map<std::string, std::string> picture_of(const std::string& folder) {
  std::map<std::string, std::string> seen;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat raw {};
    ::lstat(entry.path().c_str(), &raw);
    seen[entry.path().string()] =
        std::to_string(raw.st_size) + " " + std::to_string(raw.st_mode) + " " +
        std::to_string(raw.st_mtim.tv_sec) + "." + std::to_string(raw.st_mtim.tv_nsec) + " " +
        std::to_string(raw.st_ctim.tv_sec) + "." + std::to_string(raw.st_ctim.tv_nsec);
  }
  return seen;
}

}  // namespace chord::testing
