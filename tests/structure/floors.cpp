// The table of floors. Includes point down only, and folders on one floor never include each other.
#include "tests/structure/floors.h"

#include <algorithm>
#include <vector>

namespace chord::structure {
namespace {

// Stands for the headers of the operating system: <unistd.h>, <sys/stat.h>.
constexpr std::string_view kSystem = "(system)";

struct Floor {
  std::string_view folder;
  int floor;
  // Angle includes beside the standard library; a name that ends in '/' is a prefix.
  std::vector<std::string_view> outside;
};

// Longest folder first, so that the first match is the right one.
const std::vector<Floor>& floors() {
  static const std::vector<Floor> table{
      {"include/chord/abi/", 0, {}},
      {"include/chord/", 1, {}},
      {"heuristics/", 2, {"fmt/", "nlohmann/"}},
      {"kernels/", 2, {}},
      {"cache/remote/", 3, {"fmt/", "nlohmann/", "hiredis/", "curl/", "zstd.h", kSystem}},
      {"cache/bundle/", 3, {"fmt/", "nlohmann/", "archive.h", "archive_entry.h"}},
      {"cache/", 2, {"fmt/", "nlohmann/", "xxhash.h", "sodium.h"}},
      {"src/base/", 2, {"fmt/", kSystem}},
      {"src/source/", 3, {"fmt/", "xxhash.h"}},
      {"src/cuda/", 3, {"fmt/"}},
      {"src/weights/", 3, {"fmt/"}},
      {"src/layer/", 3, {"fmt/"}},
      {"src/cubin/", 4, {"fmt/"}},
      {"src/sass/", 4, {"fmt/"}},
      {"src/module/", 4, {"fmt/", "elf.h"}},
      {"src/launch/", 5, {"fmt/"}},
      {"src/farm/", 5, {"fmt/", "nlohmann/"}},
      {"src/c_api/", 7, {"fmt/"}},
      {"src/", 6, {"fmt/", "nlohmann/"}},
      {"tools/", 8, {"fmt/", "nlohmann/", "CLI/", "chord/", kSystem}},
      {"tests/consumer/", 9, {"chord/", kSystem}},  // as users write it
      {"tests/", 9, {"fmt/", "nlohmann/", "gtest/", kSystem}},
  };
  return table;
}

// Headers that belong to one file or one folder of tests.
bool is_private_header(const std::string& path, const std::string& name) {
  if (starts_with(name, "spdlog/")) return path == "src/base/log.cpp";
  if (name == "stddef.h" || name == "stdint.h") return path == "include/chord/chord.h";
  if (name == "dlfcn.h") return path == "src/base/dynamic_library.cpp";
  return false;
}

const Floor* floor_of(std::string_view path) {
  for (const Floor& floor : floors())
    if (starts_with(path, floor.folder)) return &floor;
  return nullptr;
}

bool is_standard(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '2'; });
}

bool is_system(std::string_view name) {
  if (name == "dlfcn.h") return false;  // one file opens libraries
  for (const char* folder : {"sys/", "netinet/", "arpa/"})
    if (starts_with(name, folder)) return true;
  return ends_with(name, ".h") && name.find('/') == name.npos;
}

std::string angle_fault(const std::string& path, const Floor& own, const std::string& name) {
  if (is_private_header(path, name)) return "";
  const bool device = own.floor == 0 || ends_with(path, ".cuh");
  if (device) return "device text includes nothing from outside";
  if (is_standard(name)) return "";
  for (const std::string_view allowed : own.outside) {
    if (allowed == kSystem && is_system(name)) return "";
    if (name == allowed || (ends_with(allowed, "/") && starts_with(name, allowed))) return "";
  }
  return "not among the outside headers of " + std::string(own.folder);
}

}  // namespace

std::string include_fault(const std::string& path, const Include& include) {
  const Floor* own = floor_of(path);
  if (own == nullptr) return "a source file outside every folder of the tree";
  if (!include.quoted) return angle_fault(path, *own, include.name);
  const bool is_public = starts_with(include.name, "chord/");
  const std::string target = is_public ? "include/" + include.name : include.name;
  const Floor* below = floor_of(target);
  if (below == nullptr) return "a quoted include that is not from the root of the tree";
  if (below == own) return "";
  if (below->floor < own->floor) {
    if (ends_with(path, ".cuh") && below->floor != 0 && below->folder != "kernels/")
      return "device text includes chord/abi/ and kernels/ only";
    return "";
  }
  return std::string(own->folder) + " is not above " + std::string(below->folder);
}

}  // namespace chord::structure
