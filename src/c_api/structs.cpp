// Which struct sizes are accepted, and what is said of the others.
#include "src/c_api/structs.h"

#include <fmt/format.h>

namespace chord::c_api {
namespace {

Error wrong_size(const Call& call, std::string_view argument, std::size_t size,
                 std::span<const std::size_t> known, const char* why) {
  return call.wrong(fmt::format("{}.struct_size", argument), fmt::format("is {}{}", size, why),
                    fmt::format("{} is the size in this library; initialise the struct with its "
                                "chord_..._init()",
                                known.back()));
}

}  // namespace

Result<std::size_t> shared_struct_bytes(const Call& call, const void* at, std::string_view argument,
                                        std::span<const std::size_t> known) {
  CHORD_TRY(call.need(at, argument));
  std::size_t size = 0;
  std::memcpy(&size, at, sizeof size);
  const std::size_t own = known.back();
  if (std::find(known.begin(), known.end(), size) != known.end()) [[likely]]
    return size;
  if (size < own || size > kMostStructBytes) return wrong_size(call, argument, size, known, "");
  const auto* bytes = static_cast<const unsigned char*>(at);
  for (std::size_t i = own; i < size; ++i)
    if (bytes[i] != 0)
      return wrong_size(call, argument, size, known,
                        ", of a newer header, and sets fields that this library does not know");
  return own;
}

Error reserved_is_set(const Call& call, std::string_view argument, std::int32_t value) {
  return call.wrong(fmt::format("{}.reserved", argument), fmt::format("is {}", value),
                    "0: a later release may give it a meaning");
}

}  // namespace chord::c_api
