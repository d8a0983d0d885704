// See manifest.h.
#include "cache/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cache/key.h"

namespace chord::cache {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxKeys = 1'000'000;
constexpr std::size_t kMaxTextBytes = 4096;

// Reads members of one JSON object; remembers the first that is wrong.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* member) {
    const json* value = find(member);
    if (value == nullptr) return {};
    const auto* text = value->get_ptr<const json::string_t*>();
    if (text == nullptr || text->size() > kMaxTextBytes)
      return fail(member, "is no short text"), "";
    return *text;
  }

  std::uint64_t count(const char* member) {
    const json* value = find(member);
    if (value == nullptr) return 0;
    const auto* number = value->get_ptr<const json::number_unsigned_t*>();
    if (number == nullptr) return fail(member, "is no whole number >= 0"), 0;
    return *number;
  }

  const json* find(const char* member) {
    if (object_.is_object()) {
      const auto found = object_.find(member);
      if (found != object_.end()) return &*found;
    }
    fail(member, "is missing");
    return nullptr;
  }

  void fail(const char* member, const char* how) {
    if (!problem_) problem_ = fmt::format("'{}' of {} {}", member, where_, how);
  }

  const std::optional<std::string>& problem() const { return problem_; }

 private:
  const json& object_;
  std::string where_;
  std::optional<std::string> problem_;
};

Error refuse(std::string_view origin, std::string found) {
  return Error{ErrorCode::corrupt, fmt::format("manifest {}", origin), std::move(found),
               "write it again with chord-prewarm"};
}

Result<ManifestKey> parse_key(const json& object, std::string_view origin, std::size_t index) {
  ObjectReader reader(object, fmt::format("keys[{}]", index));
  ManifestKey key;
  key.name = reader.text("name");
  key.label = reader.text("label");
  key.arch = reader.text("arch");
  key.cubin_xxh128 = reader.text("cubin_xxh128");
  key.size = reader.count("size");
  if (!is_content_name(key.name)) reader.fail("name", "is not 32 hex digits");
  if (!key.cubin_xxh128.empty() && !is_content_name(key.cubin_xxh128))
    reader.fail("cubin_xxh128", "is not 32 hex digits");
  if (reader.problem()) return refuse(origin, *reader.problem());
  return key;
}

json key_to_json(const ManifestKey& key) {
  return json{{"name", key.name},
              {"label", key.label},
              {"arch", key.arch},
              {"cubin_xxh128", key.cubin_xxh128},
              {"size", key.size}};
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  json keys = json::array();
  for (const ManifestKey& key : manifest.keys) keys.push_back(key_to_json(key));
  const json object{{"schema", manifest.schema},
                    {"label", manifest.label},
                    {"compiler", manifest.compiler},
                    {"coverage",
                     {{"keys", manifest.coverage.keys},
                      {"present", manifest.coverage.present},
                      {"rows", manifest.coverage.rows}}},
                    {"keys", std::move(keys)}};
  // Labels may hold bytes that are not UTF-8; they must not throw.
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view origin) {
  if (text.size() > kMaxBytes) return refuse(origin, "it is larger than 64 MiB");
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) return refuse(origin, "it is not JSON");
  ObjectReader reader(object, "the manifest");
  Manifest manifest;
  const std::uint64_t schema = reader.count("schema");
  manifest.label = reader.text("label");
  manifest.compiler = reader.text("compiler");
  const json* coverage = reader.find("coverage");
  const json* keys = reader.find("keys");
  if (reader.problem()) return refuse(origin, *reader.problem());
  if (schema < 1 || schema > kSchemaVersion)
    return refuse(origin, fmt::format("it is of schema {}, this library reads up to {}", schema,
                                      kSchemaVersion));
  manifest.schema = static_cast<int>(schema);
  ObjectReader coverage_reader(*coverage, "coverage");
  manifest.coverage.keys = coverage_reader.count("keys");
  manifest.coverage.present = coverage_reader.count("present");
  manifest.coverage.rows = coverage_reader.text("rows");
  if (coverage_reader.problem()) return refuse(origin, *coverage_reader.problem());
  if (!keys->is_array() || keys->size() > kMaxKeys)
    return refuse(origin, "'keys' is no list of at most a million keys");
  for (const json& key : *keys) {
    CHORD_TRY(ManifestKey parsed, parse_key(key, origin, manifest.keys.size()));
    manifest.keys.push_back(std::move(parsed));
  }
  return manifest;
}

std::string pin_name(const Manifest& manifest) {
  // The names that the first schema used stay as they were, so that its library finds its own.
  if (manifest.schema == 1) return content_name(manifest.label) + ".json";
  return content_name(fmt::format("{} {}", manifest.schema, manifest.label)) + ".json";
}

std::vector<Manifest> pinned_manifests(const Layout& layout, FileSystem& files,
                                       const LogSink& log) {
  std::vector<Manifest> manifests;
  std::vector<std::string> names;
  if (files.list(layout.pins(), names)) return manifests;
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    const std::string path = layout.pins() + "/" + name;
    std::string text;
    if (const FileError error = files.read(path, text)) {
      log(LogLevel::warn, fmt::format("pinned manifest left out: {}", error.message()));
      continue;
    }
    Result<Manifest> manifest = parse_manifest(text, path);
    if (manifest)
      manifests.push_back(std::move(manifest).value());
    else
      log(LogLevel::warn, manifest.error().message());
  }
  return manifests;
}

}  // namespace chord::cache
