// See disk_tier.h.
#include "cache/disk_tier.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cache/publish.h"

namespace chord::cache {
namespace {

constexpr std::size_t kMaxBadFiles = 16;
// Two hits within a second need one stamp: 64 processes that start together would write 64.
constexpr std::int64_t kStampGrainNs = 1'000'000'000;

TierAnswer absent(std::string reason) { return {Lookup::absent, {}, std::move(reason)}; }
TierAnswer refused(std::string reason) { return {Lookup::refused, {}, std::move(reason)}; }
TierAnswer failed(std::string reason) { return {Lookup::failed, {}, std::move(reason)}; }

bool is_missing(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

}  // namespace

DiskTier::DiskTier(std::string root, Access access, FileSystem& files, const Clock& clock)
    : layout_{std::move(root)},
      access_(access),
      trust_(access == Access::read_only ? Trust::own_and_root : Trust::own),
      files_(files),
      clock_(clock) {}

TierAnswer DiskTier::check_folder(const std::string& path) const {
  FileStat stat;
  if (const FileError error = files_.stat(path, stat)) {
    if (is_missing(error.error_number)) return absent("no such entry");
    return failed(error.message());
  }
  if (!stat.exists) return absent("no such entry");
  if (const std::string why = why_not_trusted(stat, trust_, files_.user()); !why.empty())
    return refused(fmt::format("{} is not trusted: {}", path, why));
  if (!stat.is_directory) return absent(fmt::format("{} is not a folder", path));
  return {Lookup::value, {}, {}};
}

TierAnswer DiskTier::check_folders(const CacheKey& key) const {
  TierAnswer answer;
  for (const std::string& path : {layout_.root, layout_.entries(), layout_.shard(key.name)}) {
    answer = check_folder(path);
    if (answer.lookup != Lookup::value) break;
  }
  return answer;
}

TierAnswer DiskTier::get(const CacheKey& key) {
  if (!is_content_name(key.name)) return absent("the key's name is not 32 hex digits");
  TierAnswer answer = check_folders(key);
  if (answer.lookup != Lookup::value) return answer;
  const std::string path = layout_.entry(key.name);
  FileStat opened;
  if (const FileError error = files_.read(path, answer.bytes, &opened)) {
    if (is_missing(error.error_number)) return absent("no such entry");
    if (error.error_number == ELOOP)
      return refused(fmt::format("{} is not trusted: it is a symbolic link", path));
    return failed(error.message());
  }
  if (const std::string why = why_not_trusted(opened, trust_, files_.user()); !why.empty())
    return refused(fmt::format("{} is not trusted: {}", path, why));
  stamp(path, opened);
  return answer;
}

void DiskTier::stamp(const std::string& path, const FileStat& stat) const {
  if (access_ == Access::read_only) return;
  const std::int64_t now = clock_.now_ns();
  if (std::llabs(now - stat.modified_ns) > kStampGrainNs) (void)files_.touch(path, now);
}

std::string DiskTier::why_root_not_trusted() const {
  const TierAnswer answer = check_folder(layout_.root);
  return answer.lookup == Lookup::refused ? answer.reason : std::string();
}

Status DiskTier::make_root() {
  const std::string asked = fmt::format("write to cache folder {}", layout_.root);
  const char* help =
      "name another folder with CHORD_CACHE_DIR, or repair its owner and mode (0700)";
  if (access_ == Access::read_only)
    return Error{ErrorCode::io_error, asked, "it was named as a read-only folder", help};
  if (const FileError error = files_.make_directories(layout_.root))
    return Error{ErrorCode::io_error, asked, error.message(), help};
  if (std::string why = why_root_not_trusted(); !why.empty())
    return Error{ErrorCode::io_error, asked, std::move(why), help};
  return {};
}

Status DiskTier::put(const CacheKey& key, std::string_view bytes) {
  CHORD_TRY(make_root());
  const std::string asked = fmt::format("write cache entry {}", key.name);
  if (!is_content_name(key.name))
    return Error{ErrorCode::invalid_argument, asked, "the key's name is not 32 hex digits", ""};
  if (const TierAnswer folders = check_folders(key); folders.lookup == Lookup::refused)
    return Error{ErrorCode::io_error, asked, folders.reason, ""};
  if (const FileError error =
          publish_file(files_, clock_, layout_.shard(key.name), key.name, bytes))
    return Error{ErrorCode::io_error, asked, error.message(), ""};
  return {};
}

Status DiskTier::remove(const CacheKey& key) {
  if (!is_content_name(key.name) || access_ == Access::read_only)
    return Error{ErrorCode::invalid_argument, fmt::format("remove cache entry '{}'", key.name),
                 "it is not an entry of a writable folder", ""};
  const FileError error = files_.remove(layout_.entry(key.name));
  if (error && !is_missing(error.error_number))
    return Error{ErrorCode::io_error, fmt::format("remove cache entry {}", key.name),
                 error.message(), ""};
  return {};
}

void DiskTier::set_aside(const CacheKey& key, std::string_view /*reason*/) {
  if (access_ == Access::read_only || !is_content_name(key.name)) return;
  std::vector<std::string> kept;
  (void)files_.list(layout_.bad(), kept);
  const bool may_keep = kept.size() < kMaxBadFiles && !files_.make_directories(layout_.bad());
  if (may_keep && !files_.rename(layout_.entry(key.name), layout_.bad(key.name))) return;
  (void)remove(key);
}

}  // namespace chord::cache
