// See environment.h.
#include "src/base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/numbers.h"

namespace chord::base {
namespace {

constexpr const char* kCacheDir = "CHORD_CACHE_DIR";
constexpr const char* kReadonlyDirs = "CHORD_CACHE_READONLY_DIRS";
constexpr const char* kNvrtcLibrary = "CHORD_NVRTC_LIBRARY";
constexpr const char* kLog = "CHORD_LOG";
constexpr const char* kJit = "CHORD_JIT";
constexpr const char* kMaxBytes = "CHORD_CACHE_MAX_BYTES";
constexpr const char* kMaxFiles = "CHORD_CACHE_MAX_FILES";
constexpr const char* kMaxAgeDays = "CHORD_CACHE_MAX_AGE_DAYS";
constexpr const char* kRemote = "CHORD_REMOTE";
constexpr const char* kRemoteWrite = "CHORD_REMOTE_WRITE";
constexpr const char* kRemoteDeadline = "CHORD_REMOTE_DEADLINE_MS";
constexpr const char* kRemotePassword = "CHORD_REMOTE_PASSWORD";
constexpr const char* kRemoteToken = "CHORD_REMOTE_TOKEN";
constexpr const char* kSignatures = "CHORD_SIGNATURES";
constexpr const char* kTrustedKeys = "CHORD_TRUSTED_KEYS";
constexpr const char* kSigningKey = "CHORD_SIGNING_KEY";
constexpr const char* kManifest = "CHORD_MANIFEST";
constexpr const char* kCompile = "CHORD_COMPILE";
constexpr const char* kFarmDeadline = "CHORD_FARM_DEADLINE_MS";

constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kDefaultMaxFiles = 20000;
constexpr std::int64_t kLongestDeadlineMs = 3'600'000;
constexpr std::int64_t kLongestAgeDays = 36500;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

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

// One number option: out of its bounds is an error wherever it comes from.
template <class Number>
Status resolve_number(std::optional<Number>& option, const EnvironmentLookup& lookup,
                      const char* variable, Number first, Number last, Number default_value) {
  const auto refuse = [&](std::string_view value) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}={}", variable, value.substr(0, 64)),
                 fmt::format("it is not a whole number in {}..{}", first, last), "correct it"};
  };
  const std::optional<std::string> text = lookup(variable);
  if (!option && text) {
    const bool is_size = std::string_view(variable) == kMaxBytes;
    const std::optional<std::uint64_t> number =
        is_size ? parse_byte_size(*text) : parse_whole_number(*text);
    if (!number || *number > kMost) return refuse(*text);
    option = static_cast<Number>(*number);
  }
  if (!option) option = default_value;
  if (*option < first || *option > last) return refuse(std::to_string(*option));
  return {};
}

Status resolve_flag(std::optional<bool>& option, const EnvironmentLookup& lookup,
                    const char* variable) {
  const std::string text = lookup(variable).value_or("0");
  if (text != "0" && text != "1")
    return Error{ErrorCode::invalid_argument, fmt::format("{}={}", variable, text.substr(0, 64)),
                 "it is neither 0 nor 1", "set 1 for yes, 0 for no"};
  if (!option) option = text == "1";
  return {};
}

void resolve_text(std::optional<std::string>& option, const EnvironmentLookup& lookup,
                  const char* variable) {
  if (!option) option = lookup(variable);
  if (option && option->empty()) option.reset();
}

Status resolve_bounds(Options& options, const EnvironmentLookup& lookup) {
  CHORD_TRY(resolve_number(options.max_cache_bytes, lookup, kMaxBytes, std::uint64_t{1}, kMost,
                           kDefaultMaxBytes));
  CHORD_TRY(resolve_number(options.max_cache_files, lookup, kMaxFiles, std::uint64_t{1}, kMost,
                           kDefaultMaxFiles));
  return resolve_number(options.max_cache_age_days, lookup, kMaxAgeDays, std::int64_t{0},
                        kLongestAgeDays, std::int64_t{0});
}

Status resolve_fleet(Options& options, const EnvironmentLookup& lookup) {
  // Text that is empty switches off what the environment names.
  if (!options.remote) options.remote = lookup(kRemote).value_or("");
  CHORD_TRY(resolve_flag(options.remote_write, lookup, kRemoteWrite));
  CHORD_TRY(resolve_number(options.remote_deadline_ms, lookup, kRemoteDeadline, std::int64_t{1},
                           kLongestDeadlineMs, std::int64_t{1000}));
  CHORD_TRY(resolve_number(options.farm_deadline_ms, lookup, kFarmDeadline, std::int64_t{1},
                           kLongestDeadlineMs, std::int64_t{60000}));
  CHORD_TRY(resolve_name<SignaturePolicy>(options.signatures, lookup, kSignatures,
                                          parse_signature_policy, SignaturePolicy::accept_local));
  CHORD_TRY(resolve_name<CompileAt>(options.compile_at, lookup, kCompile, parse_compile_at,
                                    CompileAt::local));
  resolve_text(options.trusted_keys, lookup, kTrustedKeys);
  resolve_text(options.signing_key, lookup, kSigningKey);
  resolve_text(options.manifest, lookup, kManifest);
  return {};
}

Status resolve_secret(std::optional<std::string>& option, const EnvironmentLookup& lookup,
                      const std::string& variable, FileSystem& files) {
  resolve_text(option, lookup, variable.c_str());
  const std::string file_variable = variable + "_FILE";
  const std::string path = lookup(file_variable.c_str()).value_or("");
  if (option || path.empty()) return {};
  std::string text;
  if (const FileError error = files.read(real_path(path), text))
    return Error{ErrorCode::invalid_argument, fmt::format("{}={}", file_variable, path),
                 error.message(), "name a file whose first line is the secret"};
  option = text.substr(0, text.find_first_of("\r\n"));
  if (option->empty())
    return Error{ErrorCode::invalid_argument, fmt::format("{}={}", file_variable, path),
                 "its first line is empty", "name a file whose first line is the secret"};
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
  CHORD_TRY(resolve_bounds(options, lookup));
  CHORD_TRY(resolve_fleet(options, lookup));
  if (!options.overrides) {
    CHORD_TRY(options.overrides, parse_overrides(lookup));
  }
  return options;
}

std::string real_path(const std::string& path) {
  std::error_code problem;
  const std::filesystem::path real = std::filesystem::canonical(path, problem);
  return problem ? path : real.string();
}

Status resolve_secrets(Options& options, const EnvironmentLookup& lookup, FileSystem& files) {
  CHORD_TRY(resolve_secret(options.remote_password, lookup, kRemotePassword, files));
  return resolve_secret(options.remote_token, lookup, kRemoteToken, files);
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
