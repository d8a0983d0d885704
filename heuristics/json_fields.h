// Typed reading of JSON objects: every refusal names the file, the field, what was found and what
// would do. Shared by profiles and model configs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/status.h"

namespace chord::heuristics {

// Text of at most 16 MiB with values nested at most 64 deep.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view file);

// "the string \"abc\"", "an object": never long, never deep.
std::string describe_json(const nlohmann::json& value);

// A view of one JSON object; must not outlive it.
class Fields {
 public:
  static Result<Fields> of(const nlohmann::json& value, std::string file, std::string path);

  const std::string& path() const { return path_; }
  const nlohmann::json& raw() const { return *object_; }
  const nlohmann::json* find(const char* name) const;  // null counts as absent
  bool has(const char* name) const { return find(name) != nullptr; }

  Result<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most) const;
  Result<std::int64_t> integer_or(const char* name, std::int64_t missing, std::int64_t least,
                                  std::int64_t most) const;
  Result<double> positive_number(const char* name) const;
  Result<std::string> text(const char* name) const;  // not empty
  Result<bool> boolean(const char* name) const;
  Result<Fields> object(const char* name) const;
  Result<std::vector<Fields>> objects(const char* name) const;
  Result<std::vector<std::string>> texts(const char* name) const;

  // Refuses a field that is not among the names: a misspelt one must not be silently ignored.
  Status only(const std::vector<const char*>& names) const;

  Error wrong(const char* name, std::string found, std::string expected) const;

 private:
  Fields(const nlohmann::json& object, std::string file, std::string path)
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {}

  std::string path_of(const char* name) const;
  Error wrong_type(const char* name, std::string expected) const;

  const nlohmann::json* object_;
  std::string file_;
  std::string path_;
};

}  // namespace chord::heuristics
