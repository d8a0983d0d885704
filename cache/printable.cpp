// See printable.h.
#include "cache/printable.h"

#include <algorithm>

namespace chord::cache {

std::string printable(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace chord::cache
