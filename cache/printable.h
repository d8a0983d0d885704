// Text of unknown origin, fit for a line of a log: it may hold anything, and be a megabyte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chord::cache {

// At most `most` characters ("..." behind a cut), all of them printable ASCII; '?' for the others.
std::string printable(std::string_view text, std::size_t most = 200);

}  // namespace chord::cache
