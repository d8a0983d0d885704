// Labelled, length-prefixed fields: the one spelling of a cache key and of an entry. Readable with
// a pager, and injective: no two lists of fields give the same bytes, whatever the values hold.
//
//   field  = length ":" label "=" length ":" value "\n"
//   length = decimal, without leading zeros
#pragma once

#include <string>
#include <string_view>

#include "chord/status.h"

namespace chord::cache {

struct Field {
  std::string_view label;
  std::string_view value;
};

void append_field(std::string& text, std::string_view label, std::string_view value);

class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : text_(text) {}

  bool at_end() const { return offset_ == text_.size(); }
  Result<Field> next();

 private:
  bool take_prefixed(std::string_view& part);
  bool take(char expected);

  std::string_view text_;
  std::size_t offset_ = 0;
};

}  // namespace chord::cache
