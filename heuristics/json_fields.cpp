// Reads JSON that others wrote: nothing here throws on, follows deeply or prints what it was given.
#include "heuristics/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace chord::heuristics {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr int kMaxDepth = 64;

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 48));
  for (char& c : shown)
    if (c < 0x20 || c > 0x7e) c = '?';
  if (text.size() > shown.size()) shown += "...";
  return shown;
}

Error not_json(std::string_view file, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("reading {}", file), std::move(found),
               "it has to be one JSON object"};
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view file) {
  if (text.size() > kMaxBytes)
    return not_json(file, fmt::format("{} bytes, more than {}", text.size(), kMaxBytes));
  bool too_deep = false;
  const auto watch_depth = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  try {
    json value = json::parse(text, watch_depth);
    if (too_deep) return not_json(file, fmt::format("values nested deeper than {}", kMaxDepth));
    return value;
  } catch (const json::parse_error& error) {
    return not_json(file, fmt::format("not JSON: the text stops making sense at byte {} of {}",
                                      error.byte, text.size()));
  } catch (const json::exception&) {
    return not_json(file, "not JSON: a number is out of range");
  }
}

std::string describe_json(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case json::value_t::string:
      return fmt::format("\"{}\"", printable(value.get_ref<const std::string&>()));
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::number_integer:
      return std::to_string(value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      return std::to_string(value.get<std::uint64_t>());
    case json::value_t::number_float:
      return fmt::format("the number {}", value.get<double>());
    default:
      return "null";
  }
}

Result<Fields> Fields::of(const json& value, std::string file, std::string path) {
  if (value.is_object()) return Fields(value, std::move(file), std::move(path));
  return Error{ErrorCode::invalid_argument,
               path.empty() ? fmt::format("reading {}", file) : fmt::format("{}: {}", file, path),
               fmt::format("found {}", describe_json(value)), "it has to be an object"};
}

const json* Fields::find(const char* name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::path_of(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

Error Fields::wrong(const char* name, std::string found, std::string expected) const {
  return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", file_, path_of(name)),
               std::move(found), std::move(expected)};
}

Error Fields::wrong_type(const char* name, std::string expected) const {
  const json* value = find(name);
  return wrong(name, value ? "found " + describe_json(*value) : "the field is missing",
               "it has to be " + std::move(expected));
}

Result<std::int64_t> Fields::integer(const char* name, std::int64_t least,
                                     std::int64_t most) const {
  const json* value = find(name);
  const std::string expected = fmt::format("a whole number in {}..{}", least, most);
  if (!value || !value->is_number_integer()) return wrong_type(name, expected);
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    return wrong_type(name, expected);
  const std::int64_t number = value->get<std::int64_t>();
  if (number < least || number > most) return wrong_type(name, expected);
  return number;
}

Result<std::int64_t> Fields::integer_or(const char* name, std::int64_t missing, std::int64_t least,
                                        std::int64_t most) const {
  if (!has(name)) return missing;
  return integer(name, least, most);
}

Result<double> Fields::positive_number(const char* name) const {
  const json* value = find(name);
  if (!value || !value->is_number() || !(value->get<double>() > 0))
    return wrong_type(name, "a number above 0");
  return value->get<double>();
}

Result<std::string> Fields::text(const char* name) const {
  const json* value = find(name);
  if (!value || !value->is_string() || value->get_ref<const std::string&>().empty())
    return wrong_type(name, "a string that is not empty");
  return value->get<std::string>();
}

Result<bool> Fields::boolean(const char* name) const {
  const json* value = find(name);
  if (!value || !value->is_boolean()) return wrong_type(name, "true or false");
  return value->get<bool>();
}

Result<Fields> Fields::object(const char* name) const {
  const json* value = find(name);
  if (!value) return wrong_type(name, "an object");
  return of(*value, file_, path_of(name));
}

Result<std::vector<Fields>> Fields::objects(const char* name) const {
  const json* value = find(name);
  if (!value || !value->is_array()) return wrong_type(name, "an array of objects");
  std::vector<Fields> all;
  for (std::size_t i = 0; i < value->size(); ++i) {
    CHORD_TRY(Fields element, of((*value)[i], file_, fmt::format("{}[{}]", path_of(name), i)));
    all.push_back(std::move(element));
  }
  return all;
}

Result<std::vector<std::string>> Fields::texts(const char* name) const {
  const json* value = find(name);
  const bool is_array = value && value->is_array() && !value->empty();
  if (!is_array || !std::all_of(value->begin(), value->end(),
                                [](const json& element) { return element.is_string(); }))
    return wrong_type(name, "an array of strings that is not empty");
  return value->get<std::vector<std::string>>();
}

Status Fields::only(const std::vector<const char*>& names) const {
  for (const auto& item : object_->items()) {
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const char* name) { return item.key() == name; });
    if (!known)
      return wrong(printable(item.key()).c_str(), "no such field",
                   fmt::format("fields here: {}", fmt::join(names, ", ")));
  }
  return {};
}

}  // namespace chord::heuristics
