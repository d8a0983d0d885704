// See fields.h.
#include "cache/fields.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace chord::cache {

void append_field(std::string& text, std::string_view label, std::string_view value) {
  fmt::format_to(std::back_inserter(text), "{}:{}={}:", label.size(), label, value.size());
  text.append(value);
  text.push_back('\n');
}

bool FieldReader::take(char expected) {
  if (at_end() || text_[offset_] != expected) return false;
  ++offset_;
  return true;
}

bool FieldReader::take_prefixed(std::string_view& part) {
  const char* begin = text_.data() + offset_;
  const char* end = text_.data() + text_.size();
  std::size_t length = 0;
  const auto [stop, problem] = std::from_chars(begin, end, length);
  if (problem != std::errc{}) return false;
  if (*begin == '0' && stop != begin + 1) return false;
  offset_ += static_cast<std::size_t>(stop - begin);
  if (!take(':') || length > text_.size() - offset_) return false;
  part = text_.substr(offset_, length);
  offset_ += length;
  return true;
}

Result<Field> FieldReader::next() {
  const std::size_t start = offset_;
  Field field;
  if (take_prefixed(field.label) && take('=') && take_prefixed(field.value) && take('\n'))
    return field;
  return Error{ErrorCode::corrupt, "labelled fields", fmt::format("no field at byte {}", start),
               ""};
}

}  // namespace chord::cache
