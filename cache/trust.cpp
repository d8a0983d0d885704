// See trust.h.
#include "cache/trust.h"

#include <fmt/format.h>

namespace chord::cache {
namespace {

constexpr std::uint32_t kGroupOrOthersMayWrite = 022;

}  // namespace

std::string why_not_trusted(const FileStat& stat, Trust trust, std::uint32_t user) {
  if (stat.is_symlink) return "it is a symbolic link";
  if (!stat.is_directory && !stat.is_regular) return "it is neither a file nor a folder";
  const bool owner_is_trusted =
      stat.owner == user || (trust == Trust::own_and_root && stat.owner == 0);
  if (!owner_is_trusted)
    return fmt::format("it belongs to user {}, this process is user {}", stat.owner, user);
  if ((stat.mode & kGroupOrOthersMayWrite) != 0)
    return fmt::format("group or others may write it (mode {:04o})", stat.mode);
  return {};
}

}  // namespace chord::cache
