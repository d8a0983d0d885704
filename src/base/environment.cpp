// See environment.h.
#include "src/base/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace chord::base {
namespace {

constexpr const char* kCacheDir = "CHORD_CACHE_DIR";
constexpr const char* kReadonlyDirs = "CHORD_CACHE_READONLY_DIRS";
constexpr const char* kNvrtcLibrary = "CHORD_NVRTC_LIBRARY";
constexpr const char* kLog = "CHORD_LOG";
constexpr const char* kJit = "CHORD_JIT";

Error bad_folder(std::string_view asked_by, std::string_view path, std::string found) {
  return Error{ErrorCode::invalid_argument, fmt::format("cache folder '{}' of {}", path, asked_by),
               std::move(found), "name a folder that this user may write, or leave it unset"};
}

Result<std::string> absolute_folder(const std::string& path, std::string_view asked_by) {
  if (path.empty()) return bad_folder(asked_by, path, "it is empty");
  if (path.find('\0') != std::string::npos)
    return bad_folder(asked_by, "...", "it has a NUL character");
  std::error_code problem;
  std::filesystem::path absolute = std::filesystem::absolute(path, problem);
  if (problem) return bad_folder(asked_by, path, problem.message());
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Status resolve_cache_dir(Options& options, const EnvironmentLookup& lookup) {
  std::string asked_by = "Options::cache_dir";
  if (!options.cache_dir) {
    options.cache_dir = lookup(kCacheDir);
    asked_by = kCacheDir;
  }
  if (!options.cache_dir) return {};
  CHORD_TRY(options.cache_dir, absolute_folder(*options.cache_dir, asked_by));
  return {};
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Status resolve_readonly_dirs(Options& options, const EnvironmentLookup& lookup) {
  std::string asked_by = "Options::readonly_cache_dirs";
  if (!options.readonly_cache_dirs) {
    options.readonly_cache_dirs = split_list(lookup(kReadonlyDirs).value_or(""));
    asked_by = kReadonlyDirs;
  }
  for (std::string& folder : *options.readonly_cache_dirs) {
    CHORD_TRY(folder, absolute_folder(folder, asked_by));
  }
  return {};
}

// A folder that does not exist yet is made by the first write, not here.
Status check_asked_for(const std::string& path, FileSystem& files) {
  const char* asked_by = "CHORD_CACHE_DIR or Options::cache_dir";
  FileStat stat;
  if (const FileError error = files.stat(path, stat))
    return bad_folder(asked_by, path, error.message());
  if (stat.exists && !stat.is_directory) return bad_folder(asked_by, path, "it is not a folder");
  return {};
}

// One enum option: `parse` of the variable if it is set, else the default.
template <class Value, class Parse>
Status resolve_name(std::optional<Value>& option, const EnvironmentLookup& lookup,
                    const char* variable, Parse parse, Value default_value) {
  if (option) return {};
  const std::optional<std::string> text = lookup(variable);
  option = default_value;
  if (!text) return {};
  Result<Value> value = parse(*text);
  if (!value) {
    Error error = std::move(value).error();
    error.asked = fmt::format("{}={}", variable, *text);
    return error;
  }
  option = *value;
  return {};
}

}  // namespace

std::optional<std::string> environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

EnvironmentLookup process_environment() {
  return [](const char* variable) { return environment(variable); };
}

Result<Options> resolve_options(Options from_code, const EnvironmentLookup& lookup,
                                const OverridesParser& parse_overrides) {
  Options options = std::move(from_code);
  CHORD_TRY(resolve_cache_dir(options, lookup));
  CHORD_TRY(resolve_readonly_dirs(options, lookup));
  CHORD_TRY(
      resolve_name<LogLevel>(options.log_level, lookup, kLog, parse_log_level, LogLevel::warn));
  CHORD_TRY(resolve_name<JitPolicy>(options.jit, lookup, kJit, parse_jit_policy, JitPolicy::allow));
  // Not looked at before a compile is needed: a wrong value must not fail a hit.
  if (!options.nvrtc_library) options.nvrtc_library = lookup(kNvrtcLibrary);
  if (options.nvrtc_library && options.nvrtc_library->empty()) options.nvrtc_library.reset();
  if (!options.overrides) {
    CHORD_TRY(options.overrides, parse_overrides(lookup));
  }
  return options;
}

Result<CacheFolder> choose_cache_folder(const Options& options, const EnvironmentLookup& lookup,
                                        FileSystem& files) {
  CacheFolder folder;
  if (options.cache_dir) {
    folder.asked_for = true;
    CHORD_TRY(folder.path, absolute_folder(*options.cache_dir, kCacheDir));
    CHORD_TRY(check_asked_for(*folder.path, files));
    return folder;
  }
  const std::string xdg = lookup("XDG_CACHE_HOME").value_or("");
  if (xdg.starts_with("/") && xdg != "/") {
    CHORD_TRY(folder.path, absolute_folder(xdg + "/chord", "XDG_CACHE_HOME"));
    return folder;
  }
  const std::optional<std::string> home = lookup("HOME");
  FileStat stat;
  if (!home || home->empty()) {
    folder.why_none = "HOME is not set";
  } else if (home->find_first_not_of('/') == std::string::npos || !home->starts_with("/")) {
    folder.why_none = fmt::format("HOME is '{}'", *home);
  } else if (files.stat(*home, stat) || !stat.exists) {
    folder.why_none = fmt::format("HOME is '{}', which does not exist", *home);
  } else {
    CHORD_TRY(folder.path, absolute_folder(*home + "/.cache/chord", "HOME"));
  }
  return folder;
}

}  // namespace chord::base
