// See pins.h.
#include "cache/pins.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/disk_tier.h"
#include "cache/key.h"
#include "cache/publish.h"

namespace chord::cache {
namespace {

using nlohmann::json;

constexpr std::string_view kSuffix = ".json";

std::string key_pin_name(std::string_view key_name) {
  return fmt::format("key-{}{}", key_name, kSuffix);
}

Result<std::string> write_pin(const Layout& layout, const std::string& name,
                              const Manifest& manifest, FileSystem& files, const Clock& clock) {
  CHORD_TRY(DiskTier(layout.root, Access::read_write, files, clock).make_root());
  if (const FileError error = publish_file(files, clock, layout.pins(), name, to_json(manifest)))
    return Error{ErrorCode::io_error, fmt::format("pin '{}'", manifest.label), error.message(), ""};
  return layout.pins() + "/" + name;
}

bool is_missing(const FileError& error) {
  return error.error_number == ENOENT || error.error_number == ENOTDIR;
}

// Whether another try may read it. What is no readable file of this user's stays so, and must not
// keep the folder from being pruned for ever.
bool may_pass(const FileError& error) {
  switch (error.error_number) {
    case EACCES:
    case EPERM:
    case ELOOP:
    case EINVAL:
    case EFBIG:
      return false;
    default:
      return !is_missing(error);
  }
}

// Members that are not as they should be add nothing; the rest of the list still protects.
bool add_names(const std::string& text, std::unordered_set<std::string>& names) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return false;
  const auto keys = object.find("keys");
  if (keys == object.end() || !keys->is_array()) return false;
  for (const json& key : *keys) {
    if (!key.is_object()) continue;
    const auto name = key.find("name");
    if (name == key.end() || !name->is_string()) continue;
    const auto& value = name->get_ref<const std::string&>();
    if (is_content_name(value)) names.insert(value);
  }
  return true;
}

// Calls visit(path, text, error) for every pin; the answer is the error of the listing.
template <class Visit>
FileError for_each_pin(const Layout& layout, FileSystem& files, Visit visit) {
  std::vector<std::string> names;
  if (FileError error = files.list(layout.pins(), names)) return error;
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    const std::string path = layout.pins() + "/" + name;
    std::string text;
    const FileError error = files.read(path, text);
    if (!is_missing(error)) visit(path, text, error);
  }
  return {};
}

Pin describe(const Layout& layout, const std::string& path, const Manifest& manifest,
             FileSystem& files) {
  Pin pin{.path = path, .label = manifest.label, .keys = manifest.keys.size()};
  for (const ManifestKey& key : manifest.keys) {
    FileStat stat;
    if (files.stat(layout.entry(key.name), stat) || !stat.is_regular) continue;
    ++pin.present;
    pin.bytes_present += stat.size;
  }
  return pin;
}

}  // namespace

Result<std::string> pin_manifest(const Layout& layout, const Manifest& manifest, FileSystem& files,
                                 const Clock& clock) {
  return write_pin(layout, pin_name(manifest), manifest, files, clock);
}

Result<std::string> pin_key(const Layout& layout, const ManifestKey& key,
                            const std::string& compiler, FileSystem& files, const Clock& clock) {
  if (!is_content_name(key.name))
    return Error{ErrorCode::invalid_argument, fmt::format("pin key '{}'", key.name),
                 "it is not 32 hex digits", "name a key as it is listed"};
  Manifest manifest;
  manifest.label = key.label.empty() ? "key " + key.name : key.label;
  manifest.compiler = compiler;
  manifest.coverage.keys = 1;
  manifest.coverage.present = key.cubin_xxh128.empty() ? 0 : 1;
  manifest.keys.push_back(key);
  return write_pin(layout, key_pin_name(key.name), manifest, files, clock);
}

Status unpin(const Layout& layout, const std::string& label_or_key, FileSystem& files) {
  const std::string asked = fmt::format("unpin '{}'", label_or_key);
  std::vector<std::string> paths;
  if (is_content_name(label_or_key))
    paths.push_back(layout.pins() + "/" + key_pin_name(label_or_key));
  for (const Pin& pin : list_pins(layout, files, [](LogLevel, std::string_view) {}))
    if (pin.label == label_or_key) paths.push_back(pin.path);
  bool is_unpinned = false;
  for (const std::string& path : paths) {
    const FileError error = files.remove(path);
    if (error && !is_missing(error)) return Error{ErrorCode::io_error, asked, error.message(), ""};
    is_unpinned = is_unpinned || !error;
  }
  if (is_unpinned) return {};
  return Error{ErrorCode::not_found, asked,
               fmt::format("{} has no pin of that label or key", layout.pins()),
               "name a label, or a key of 32 hex digits, that is pinned"};
}

std::vector<Pin> list_pins(const Layout& layout, FileSystem& files, const LogSink& log) {
  std::vector<Pin> pins;
  const auto visit = [&](const std::string& path, const std::string& text, const FileError& error) {
    if (error) return log(LogLevel::warn, fmt::format("pin left out: {}", error.message()));
    const Result<Manifest> manifest = parse_manifest(text, path);
    if (!manifest) return log(LogLevel::warn, manifest.error().message());
    pins.push_back(describe(layout, path, *manifest, files));
  };
  if (const FileError error = for_each_pin(layout, files, visit); error && !is_missing(error))
    log(LogLevel::warn, fmt::format("pins are not listed: {}", error.message()));
  return pins;
}

PinnedNames pinned_names(const Layout& layout, FileSystem& files, const LogSink& log) {
  PinnedNames pinned;
  const auto note = [&](const FileError& error) {
    if (may_pass(error))
      pinned.unreadable = error.message();
    else
      log(LogLevel::warn, fmt::format("a pin protects nothing: {}", error.message()));
  };
  const auto visit = [&](const std::string& path, const std::string& text, const FileError& error) {
    if (error) return note(error);
    if (!add_names(text, pinned.names))
      log(LogLevel::warn, fmt::format("a pin protects nothing: {} is no manifest", path));
  };
  const FileError error = for_each_pin(layout, files, visit);
  if (error && !is_missing(error)) note(error);
  return pinned;
}

}  // namespace chord::cache
