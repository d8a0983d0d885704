// How a file appears in a cache folder: whole or not at all. A temporary of its own name in the
// target folder (O_EXCL), every write checked, fsync, rename, fsync of the folder. A reader sees
// the old file, the new one or none; two writers do not disturb each other, and losing is success.
// Locks only save work: this rename is what makes the cache right, also where locks do nothing.
#pragma once

#include <string>
#include <string_view>

#include "chord/platform.h"

namespace chord::cache {

// Makes the folder. Errors that shared file systems give for a moment (a folder that is not visible
// yet, a busy or stale handle) are tried again a few times. Leaves no temporary behind.
FileError publish_file(FileSystem& files, const Clock& clock, const std::string& folder,
                       const std::string& name, std::string_view bytes);

}  // namespace chord::cache
