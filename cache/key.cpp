// See key.h.
#include "cache/key.h"

#include <xxhash.h>

#include <algorithm>

#include "cache/fields.h"

namespace chord::cache {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

const std::string* value_of(const KeyFields& fields, std::string_view label) {
  for (const auto& [known, value] : fields)
    if (known == label) return &value;
  return nullptr;
}

void collect_differences(const KeyFields& fields, const KeyFields& others,
                         std::vector<std::string>& labels) {
  for (const auto& [label, value] : fields) {
    const std::string* other = value_of(others, label);
    const bool listed = std::find(labels.begin(), labels.end(), label) != labels.end();
    if (!listed && (other == nullptr || *other != value)) labels.push_back(label);
  }
}

}  // namespace

std::string content_name(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string name;
  name.reserve(2 * sizeof canonical.digest);
  for (const unsigned char byte : canonical.digest) {
    name.push_back(kHexDigits[byte >> 4]);
    name.push_back(kHexDigits[byte & 15]);
  }
  return name;
}

bool is_content_name(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

KeyBuilder::KeyBuilder(NameFunction name) : name_(name) {
  field("schema", std::to_string(kSchemaVersion));
}

KeyBuilder& KeyBuilder::field(std::string_view label, std::string_view value) {
  append_field(text_, label, value);
  return *this;
}

CacheKey KeyBuilder::finish() {
  CacheKey key{.text = std::move(text_), .name = {}};
  key.name = name_(key.text);
  return key;
}

Result<KeyFields> key_fields(std::string_view text) {
  KeyFields fields;
  FieldReader reader(text);
  while (!reader.at_end()) {
    CHORD_TRY(const Field field, reader.next());
    fields.emplace_back(field.label, field.value);
  }
  if (fields.empty() || fields.front().first != "schema")
    return Error{ErrorCode::corrupt, "text of a cache key", "it does not begin with its schema",
                 ""};
  return fields;
}

std::vector<std::string> differing_fields(std::string_view text, std::string_view other_text) {
  if (text == other_text) return {};
  const Result<KeyFields> fields = key_fields(text);
  const Result<KeyFields> others = key_fields(other_text);
  if (!fields || !others) return {"(not a key)"};
  std::vector<std::string> labels;
  collect_differences(*fields, *others, labels);
  collect_differences(*others, *fields, labels);
  if (labels.empty()) labels.emplace_back("(order of the fields)");
  return labels;
}

}  // namespace chord::cache
