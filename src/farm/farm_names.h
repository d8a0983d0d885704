// Where in a Redis the compile farm's things lie. Of one schema: libraries of different versions
// that share a store do not read each other's requests.
//
//   <prefix>farm:v2             stream of requests: fields "recipe", "reply", "asked_by"
//   <prefix>farm:v2:alive       who serves; gone some seconds after the last one has ended
//   <prefix>farm:v2:reply:<id>  list of one reply; gone a minute after it was pushed
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/key.h"

namespace chord::farm {

inline constexpr const char* kGroup = "chord";
inline constexpr std::int64_t kReplyLifeMs = 60'000;

inline std::string stream_name(std::string_view prefix) {
  return fmt::format("{}farm:v{}", prefix, cache::kSchemaVersion);
}
inline std::string alive_name(std::string_view prefix) { return stream_name(prefix) + ":alive"; }
inline std::string reply_name(std::string_view prefix, std::string_view id) {
  return fmt::format("{}:reply:{}", stream_name(prefix), id);
}

}  // namespace chord::farm
