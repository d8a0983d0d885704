// What a Redis server answers, as a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/printable.h"

namespace chord::cache {

struct RedisReply {
  enum class Kind { nil, integer, text, error, array };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  // of an error, too: "WRONGTYPE Operation against ..."
  std::vector<RedisReply> elements;

  bool is_error() const { return kind == Kind::error; }
  bool is_text(std::string_view wanted) const { return kind == Kind::text && text == wanted; }
  // "WRONGTYPE" of an error; empty where there is no error, or none that begins with such a word.
  std::string_view error_word() const;
};

// For people: "an integer", "an array"; of an error its text, of a text nothing of it.
std::string describe(const RedisReply& reply);

}  // namespace chord::cache
