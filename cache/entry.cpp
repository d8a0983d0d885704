// See entry.h.
#include "cache/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "cache/fields.h"
#include "cache/key.h"

namespace chord::cache {
namespace {

constexpr std::size_t kChecksumDigits = 32;

constexpr std::string_view kMagicPrefix = "chord cubin ";
constexpr std::string_view kSignedMagic = "chord cubin signature 1\n";

std::string magic() { return fmt::format("{}{}\n", kMagicPrefix, kSchemaVersion); }

Error corrupt(std::string found) {
  return Error{ErrorCode::corrupt, "cache entry", std::move(found), ""};
}

// Reads the fields in their order; the first that is wrong ends the reading.
class EntryReader {
 public:
  explicit EntryReader(std::string_view text) : reader_(text) {}

  Status text(std::string_view label, std::string& value) {
    CHORD_TRY(const Field field, reader_.next());
    if (field.label != label)
      return corrupt(fmt::format("field '{}' where '{}' was expected", field.label, label));
    value.assign(field.value);
    return {};
  }

  template <class Number>
  Status number(std::string_view label, Number& value) {
    std::string digits;
    CHORD_TRY(text(label, digits));
    const char* end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, value);
    if (problem != std::errc{} || stop != end || !(value >= 0) || std::isinf(double(value)))
      return corrupt(fmt::format("{} is '{}'", label, digits));
    return {};
  }

  bool at_end() const { return reader_.at_end(); }

 private:
  FieldReader reader_;
};

Status read_fields(std::string_view text, Entry& entry) {
  EntryReader reader(text);
  CHORD_TRY(reader.text("key", entry.key.text));
  CHORD_TRY(reader.text("kernel_name", entry.kernel_name));
  CHORD_TRY(reader.text("arch", entry.arch));
  CHORD_TRY(reader.text("compiler", entry.compiler));
  CHORD_TRY(reader.number("compile_ms", entry.compile_ms));
  CHORD_TRY(reader.number("threads", entry.threads));
  CHORD_TRY(reader.number("shared_bytes", entry.shared_bytes));
  CHORD_TRY(reader.number("registers", entry.registers));
  CHORD_TRY(reader.number("local_bytes", entry.local_bytes));
  CHORD_TRY(reader.number("cluster", entry.cluster));
  CHORD_TRY(reader.text("cubin_sha256", entry.cubin_sha256));
  CHORD_TRY(reader.text("signer", entry.signer));
  CHORD_TRY(reader.text("signature", entry.signature));
  CHORD_TRY(reader.text("cubin", entry.cubin));
  if (!reader.at_end()) return corrupt("bytes after the last field");
  return {};
}

void append_facts(std::string& text, const Entry& entry) {
  append_field(text, "key", entry.key.text);
  append_field(text, "kernel_name", entry.kernel_name);
  append_field(text, "arch", entry.arch);
  append_field(text, "compiler", entry.compiler);
  append_field(text, "compile_ms", fmt::format("{}", entry.compile_ms));
  append_field(text, "threads", std::to_string(entry.threads));
  append_field(text, "shared_bytes", std::to_string(entry.shared_bytes));
  append_field(text, "registers", std::to_string(entry.registers));
  append_field(text, "local_bytes", std::to_string(entry.local_bytes));
  append_field(text, "cluster", std::to_string(entry.cluster));
  append_field(text, "cubin_sha256", entry.cubin_sha256);
}

}  // namespace

std::string signed_text(const Entry& entry) {
  std::string text(kSignedMagic);
  append_facts(text, entry);
  return text;
}

std::string serialize(const Entry& entry) {
  const std::string first = magic();
  std::string bytes;
  bytes.reserve(entry.cubin.size() + entry.key.text.size() + 1024);
  bytes.append(first).append(kChecksumDigits, '0').push_back('\n');
  const std::size_t begin = bytes.size();
  append_facts(bytes, entry);
  append_field(bytes, "signer", entry.signer);
  append_field(bytes, "signature", entry.signature);
  append_field(bytes, "cubin", entry.cubin);
  bytes.replace(first.size(), kChecksumDigits, content_name(std::string_view(bytes).substr(begin)));
  return bytes;
}

bool is_other_schema(std::string_view bytes) {
  return bytes.starts_with(kMagicPrefix) && !bytes.starts_with(magic());
}

Result<Entry> parse_entry(std::string_view bytes) {
  const std::string expected_magic = magic();
  if (!bytes.starts_with(expected_magic))
    return corrupt(is_other_schema(bytes) ? "it is of another schema"
                                          : "it is not an entry of this cache");
  bytes.remove_prefix(expected_magic.size());
  if (bytes.size() <= kChecksumDigits || bytes[kChecksumDigits] != '\n')
    return corrupt("it is cut short");
  const std::string_view checksum = bytes.substr(0, kChecksumDigits);
  const std::string_view fields = bytes.substr(kChecksumDigits + 1);
  if (content_name(fields) != checksum) return corrupt("its checksum differs");
  Entry entry;
  CHORD_TRY(read_fields(fields, entry));
  entry.key.name = content_name(entry.key.text);
  return entry;
}

Status check_identity(const Entry& entry, const CacheKey& wanted) {
  if (entry.key.text != wanted.text) {
    const auto labels = differing_fields(entry.key.text, wanted.text);
    return Error{ErrorCode::corrupt, fmt::format("cache entry for key {}", wanted.name),
                 fmt::format("it is of another key ({}); they differ in: {}", entry.arch,
                             fmt::join(labels, ", ")),
                 ""};
  }
  FieldReader fields(wanted.text);
  while (!fields.at_end()) {
    CHORD_TRY(const Field field, fields.next());
    if (field.label == "arch" && field.value != entry.arch)
      return Error{ErrorCode::corrupt, fmt::format("cache entry for key {}", wanted.name),
                   fmt::format("its cubin is for {}, the key says {}", entry.arch, field.value),
                   ""};
  }
  return {};
}

}  // namespace chord::cache
