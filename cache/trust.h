// Whom the cache believes. A cubin runs on the GPU with the rights of its user, so bytes that
// another user may have written are not loaded.
#pragma once

#include <cstdint>
#include <string>

#include "chord/platform.h"

namespace chord::cache {

enum class Trust {
  own,           // this user
  own_and_root,  // also root: read-only folders that an installer or an image build made
};

// Why a folder or file is not trusted; empty when it is. Only this user (or root) may own it,
// nobody else may write it, and it must be what it stands for instead of a symbolic link to it.
std::string why_not_trusted(const FileStat& stat, Trust trust, std::uint32_t user);

}  // namespace chord::cache
