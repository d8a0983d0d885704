// The cache folder that a command works on, opened to be read or to be changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cache/inspect.h"
#include "cache/signatures.h"
#include "chord/options.h"
#include "chord/platform.h"
#include "chord/status.h"
#include "tools/cache/command.h"

namespace chord::tools {

// Of the operating system.
FileSystem& files();
const Clock& clock();

enum class Purpose {
  read,    // also a folder of root, also on a read-only volume
  change,  // refused where this user does not own it or can not write it
};

struct Folder {
  Options options;  // as resolved
  cache::Inspector inspector;

  const cache::Layout& layout() const { return inspector.layout(); }
};

// An error if the folder is missing, not trusted, or does not serve the purpose. Makes nothing.
Result<Folder> open_folder(const Common& common, Purpose purpose);

// A log for the library's calls; warnings become notes of the result.
LogSink noting(std::vector<std::string>& notes);

// By key: what the pinned manifests call it.
std::map<std::string, std::string> labels_of(const Folder& folder);

}  // namespace chord::tools
