// See publish.h.
#include "cache/publish.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>

#include "cache/key.h"
#include "cache/layout.h"

namespace chord::cache {
namespace {

constexpr int kTries = 4;
constexpr std::int64_t kFirstPauseMs = 10;  // doubles: 70 ms in all

// Unlike any other's: of this process, call and instant. A clash is caught by O_EXCL.
std::string temporary_path(const FileSystem& files, const Clock& clock, const std::string& folder) {
  static std::atomic<std::uint64_t> calls{0};
  const std::string seed =
      fmt::format("{} {} {} {}", files.process_label(), clock.now_ns(), clock.steady_ns(), ++calls);
  return fmt::format("{}/{}{}", folder, Layout::kTemporaryPrefix, content_name(seed));
}

bool may_pass(int error_number) {
  switch (error_number) {
    case ENOENT:  // a folder made by another machine a moment ago
    case EEXIST:  // a temporary of the same name
    case EBUSY:
    case ESTALE:
    case EAGAIN:
    case EINTR:
      return true;
    default:
      return false;
  }
}

FileError try_once(FileSystem& files, const Clock& clock, const std::string& folder,
                   const std::string& name, std::string_view bytes) {
  if (FileError error = files.make_directories(folder)) return error;
  const std::string temporary = temporary_path(files, clock, folder);
  if (FileError error = files.write_exclusive(temporary, bytes)) {
    if (error.error_number != EEXIST) (void)files.remove(temporary);
    return error;
  }
  const FileError error = files.rename(temporary, folder + "/" + name);
  if (error) (void)files.remove(temporary);
  // A file system that says EEXIST has the winner's file there, which holds the same.
  if (error.error_number == EEXIST) return {};
  return error;
}

}  // namespace

FileError publish_file(FileSystem& files, const Clock& clock, const std::string& folder,
                       const std::string& name, std::string_view bytes) {
  FileError error;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) clock.sleep_ms(kFirstPauseMs << (attempt - 1));
    error = try_once(files, clock, folder, name, bytes);
    if (!may_pass(error.error_number)) break;
  }
  // Without it a power cut may lose the name, never half a file: not worth failing for.
  if (!error) (void)files.sync_directory(folder);
  return error;
}

}  // namespace chord::cache
