// See folder.h.
#include "tools/cache/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "cache/manifest.h"
#include "cache/trust.h"
#include "src/base/environment.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

Result<Options> options_of(const Common& common) {
  Options options;
  if (!common.cache_dir.empty()) options.cache_dir = common.cache_dir;
  // Overrides shape kernels; a wrong one must not keep anybody from looking into the cache.
  const auto no_overrides = [](const EnvironmentLookup&) { return Result<Overrides>(Overrides{}); };
  return base::resolve_options(std::move(options), base::process_environment(), no_overrides);
}

// Why this process can not change the folder; empty when it can.
std::string why_not_changed(const std::string& root) {
  FileStat stat;
  if (const FileError error = files().stat(root, stat)) return error.message();
  std::string why = cache::why_not_trusted(stat, cache::Trust::own, files().user());
  if (why.empty() && ::faccessat(AT_FDCWD, root.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    why = std::error_code(errno, std::generic_category()).message();
  return why;
}

}  // namespace

FileSystem& files() {
  static base::PosixFileSystem files;
  return files;
}

const Clock& clock() {
  static const base::SystemClock clock;
  return clock;
}

Result<Folder> open_folder(const Common& common, Purpose purpose) {
  CHORD_TRY(Options options, options_of(common));
  CHORD_TRY(const base::CacheFolder chosen,
            base::choose_cache_folder(options, base::process_environment(), files()));
  if (!chosen.path)
    return Error{ErrorCode::not_found, "a cache folder", chosen.why_none,
                 "name one with --cache-dir or CHORD_CACHE_DIR"};
  CHORD_TRY(cache::Inspector inspector, cache::Inspector::open(*chosen.path, files(), clock()));
  if (purpose == Purpose::change)
    if (std::string why = why_not_changed(*chosen.path); !why.empty())
      return bad_flags(fmt::format("change cache folder {}", *chosen.path), std::move(why),
                       "this command runs as the folder's owner, where the folder can be written");
  return Folder{std::move(options), std::move(inspector)};
}

LogSink noting(std::vector<std::string>& notes) {
  return [&notes](LogLevel level, std::string_view message) {
    if (level >= LogLevel::warn) notes.emplace_back(message);
  };
}

std::map<std::string, std::string> labels_of(const Folder& folder) {
  std::vector<std::string> notes;
  std::map<std::string, std::string> labels;
  for (const cache::Manifest& manifest :
       cache::pinned_manifests(folder.layout(), files(), noting(notes)))
    for (const cache::ManifestKey& key : manifest.keys)
      if (!key.label.empty()) labels.emplace(key.name, key.label);
  return labels;
}

}  // namespace chord::tools
