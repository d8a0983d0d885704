// See message.h.
#include "src/farm/message.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "cache/fields.h"
#include "cache/key.h"
#include "cache/printable.h"

namespace chord::farm {
namespace {

constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxLabelBytes = 4096;
constexpr int kMaxThreads = 1024;  // of a CUDA block

Error malformed(std::string found) {
  return Error{ErrorCode::corrupt, "message of the compile farm", std::move(found),
               "let all nodes and farms of a store run the same version of this library"};
}

template <class Number>
bool read_number(std::string_view text, Number most, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc{} && stop == end && value >= 0 && value <= most;
}

// A field is "option name" = value: its label says which part of the recipe it is.
class RecipeReader {
 public:
  explicit RecipeReader(ReceivedRecipe& received) : received_(received) {}

  Status take(const cache::Field& field) {
    cubin::Recipe& recipe = received_.recipe;
    const std::size_t space = field.label.find(' ');
    const std::string_view kind = field.label.substr(0, space);
    const std::string_view name =
        space == field.label.npos ? std::string_view() : field.label.substr(space + 1);
    if (kind == "label" && field.value.size() <= kMaxLabelBytes) {
      recipe.label = cache::printable(field.value, kMaxLabelBytes);
    } else if (kind == "source_name" && field.value.size() <= kMaxLabelBytes) {
      recipe.source_name = cache::printable(field.value, kMaxLabelBytes);
    } else if (kind == "source") {
      recipe.source = field.value;
    } else if (kind == "arch") {
      CHORD_TRY(recipe.arch, parse_architecture(field.value));
    } else if (kind == "threads") {
      if (!read_number(field.value, kMaxThreads, recipe.threads)) return bad(field);
    } else if (kind == "shared_bytes") {
      if (!read_number(field.value, std::int64_t{1} << 20, recipe.shared_bytes)) return bad(field);
    } else if (kind == "file") {
      recipe.files.push_back({keep(name), keep(field.value)});
    } else if (kind == "field") {
      recipe.fields.emplace_back(name, field.value);
    } else {
      return bad(field);
    }
    return {};
  }

 private:
  static Error bad(const cache::Field& field) {
    return malformed(fmt::format("its field '{}' is wrong", cache::printable(field.label, 64)));
  }
  std::string_view keep(std::string_view text) {
    received_.texts.push_back(std::make_unique<std::string>(text));
    return *received_.texts.back();
  }

  ReceivedRecipe& received_;
};

Status check_schema(cache::FieldReader& reader) {
  CHORD_TRY(const cache::Field schema, reader.next());
  if (schema.label == "schema" && schema.value == std::to_string(cache::kSchemaVersion)) return {};
  return malformed(fmt::format("it is not of schema {}", cache::kSchemaVersion));
}

void append_schema(std::string& bytes) {
  cache::append_field(bytes, "schema", std::to_string(cache::kSchemaVersion));
}

}  // namespace

std::string encode(const cubin::Recipe& recipe) {
  std::string bytes;
  append_schema(bytes);
  cache::append_field(bytes, "label", recipe.label);
  cache::append_field(bytes, "source_name", recipe.source_name);
  cache::append_field(bytes, "arch", name(recipe.arch));
  cache::append_field(bytes, "threads", std::to_string(recipe.threads));
  cache::append_field(bytes, "shared_bytes", std::to_string(recipe.shared_bytes));
  for (const auto& [field, value] : recipe.fields)
    cache::append_field(bytes, "field " + field, value);
  for (const source::DeviceFile& file : recipe.files)
    cache::append_field(bytes, fmt::format("file {}", file.name), file.text);
  cache::append_field(bytes, "source", recipe.source);
  return bytes;
}

Result<ReceivedRecipe> decode_recipe(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return malformed("it is larger than 16 MiB");
  ReceivedRecipe received;
  cache::FieldReader reader(bytes);
  CHORD_TRY(check_schema(reader));
  RecipeReader recipe(received);
  while (!reader.at_end()) {
    CHORD_TRY(const cache::Field field, reader.next());
    CHORD_TRY(recipe.take(field));
  }
  if (received.recipe.source.empty()) return malformed("it has no source");
  return received;
}

std::string encode(const FarmReply& reply) {
  std::string bytes;
  append_schema(bytes);
  cache::append_field(bytes, "compiler", reply.compiler);
  cache::append_field(bytes, "failure", reply.failure);
  return bytes;
}

Result<FarmReply> decode_reply(std::string_view bytes) {
  FarmReply reply;
  cache::FieldReader reader(bytes);
  CHORD_TRY(check_schema(reader));
  CHORD_TRY(const cache::Field compiler, reader.next());
  CHORD_TRY(const cache::Field failure, reader.next());
  if (compiler.label != "compiler" || failure.label != "failure" || !reader.at_end())
    return malformed("it is no reply");
  reply.compiler = compiler.value;
  reply.failure = failure.value;
  if (reply.compiler.empty() == reply.failure.empty())
    return malformed("it says neither who compiled nor why nobody did");
  return reply;
}

}  // namespace chord::farm
