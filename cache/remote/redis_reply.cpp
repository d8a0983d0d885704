// See redis_reply.h.
#include "cache/remote/redis_reply.h"

#include <algorithm>

namespace chord::cache {
namespace {

bool is_word_letter(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

std::string_view RedisReply::error_word() const {
  if (!is_error()) return {};
  const std::string_view word = std::string_view(text).substr(0, text.find(' '));
  return std::all_of(word.begin(), word.end(), is_word_letter) ? word : std::string_view{};
}

std::string describe(const RedisReply& reply) {
  switch (reply.kind) {
    case RedisReply::Kind::nil:
      return "nothing";
    case RedisReply::Kind::integer:
      return "an integer";
    case RedisReply::Kind::text:
      return "a text";
    case RedisReply::Kind::error:
      return printable(reply.text);
    case RedisReply::Kind::array:
      return "an array";
  }
  return "";
}

}  // namespace chord::cache
