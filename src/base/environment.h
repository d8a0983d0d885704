// The door to the environment: the only getenv. Options come from code first, then from CHORD_*,
// then from the default; every error names the variable that is wrong.
//
//   CHORD_TRY(Options options, resolve_options(from_code, process_environment(), parse_overrides));
//   CHORD_TRY(CacheFolder folder, choose_cache_folder(options, process_environment(), files));
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "chord/options.h"

namespace chord::base {

std::optional<std::string> environment(const char* variable);
EnvironmentLookup process_environment();

// Overrides belong to the solver, which this floor does not know: the caller passes its parser.
using OverridesParser = std::function<Result<Overrides>(const EnvironmentLookup&)>;

// Fills every option that is empty, except a cache_dir that nobody named (choose_cache_folder).
// Relative cache folders become absolute, so that a later chdir changes nothing.
Result<Options> resolve_options(Options from_code, const EnvironmentLookup& lookup,
                                const OverridesParser& parse_overrides);

// Passwords and tokens of the remote store that CHORD_*_FILE names, read into the options. A file
// that can not be read is an error; what it holds is never repeated.
Status resolve_secrets(Options& options, const EnvironmentLookup& lookup, FileSystem& files);

// Where a path that an operator named leads: secrets and manifests are often mounted as links.
std::string real_path(const std::string& path);

struct CacheFolder {
  std::optional<std::string> path;  // empty: there is no writable cache
  bool asked_for = false;           // by code or by CHORD_CACHE_DIR
  std::string why_none;
};

// options.cache_dir, else $XDG_CACHE_HOME/chord, else ~/.cache/chord. Without a usable home there
// is no writable cache. A folder that was asked for and can not be one is an error.
Result<CacheFolder> choose_cache_folder(const Options& options, const EnvironmentLookup& lookup,
                                        FileSystem& files);

}  // namespace chord::base
