// The identity of a cubin. What shaped the code goes in, field by field; a clock, a path or a host
// name never does, so that an entry made in an image build hits on the node that serves.
//
//   CacheKey key = KeyBuilder().field("arch", "sm_90a").field("source", text).finish();
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chord/cache_tier.h"
#include "chord/status.h"

namespace chord::cache {

// Of keys, entries and the folder. A new number orphans what exists; the pruner sweeps it once it
// has not been used for long. 2: entries carry a signature.
inline constexpr int kSchemaVersion = 2;

// XXH3-128 in 32 lower-case hex digits.
std::string content_name(std::string_view bytes);
bool is_content_name(std::string_view text);

class KeyBuilder {
 public:
  using NameFunction = std::string (*)(std::string_view text);

  // Another `name` makes names collide; for tests.
  explicit KeyBuilder(NameFunction name = content_name);

  KeyBuilder& field(std::string_view label, std::string_view value);
  CacheKey finish();

 private:
  NameFunction name_;
  std::string text_;
};

using KeyFields = std::vector<std::pair<std::string, std::string>>;

// The fields of a key's text in their order, the schema first.
Result<KeyFields> key_fields(std::string_view text);

// Labels whose values differ, or that only one of both has. Empty when the texts are equal.
std::vector<std::string> differing_fields(std::string_view text, std::string_view other_text);

}  // namespace chord::cache
