// What the library takes of the outside, as interfaces: log, clock and files. src/base implements
// them; tests replace them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chord/export.h"
#include "chord/status.h"

namespace chord {

enum class LogLevel { debug, info, warn, error, off };

CHORD_API const char* name(LogLevel level);
CHORD_API Result<LogLevel> parse_log_level(std::string_view);

using LogSink = std::function<void(LogLevel, std::string_view message)>;

// Errors of the file layer carry errno so that callers can tell ENOSPC from EACCES.
struct FileError {
  int error_number = 0;  // 0: no error
  std::string call;      // "open", "rename", ...
  std::string path;

  explicit operator bool() const { return error_number != 0; }
  CHORD_API std::string message() const;  // "rename /a/b: No space left on device"
};

struct FileStat {
  bool exists = false;
  bool is_regular = false;
  bool is_directory = false;
  bool is_symlink = false;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t owner = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  // ctime: arrival, use or rewrite; no program can set it
};

// A lock on a file: held while the object lives, released on destruction and by process death.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// A file read piece by piece, for what is too large for memory; closed on destruction.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // `filled` is 0 at the end of the file only.
  virtual FileError read(char* buffer, std::size_t capacity, std::size_t& filled) = 0;
};

// A file written piece by piece; closed on destruction, complete after `finish` alone.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual FileError write(std::string_view bytes) = 0;
  virtual FileError finish() = 0;  // fsync and close
};

// The narrow file layer of the cache. Every call answers an error instead of throwing.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Regular files only; follows no symlink (ELOOP), blocks on no pipe. `opened` receives the stat
  // of the very file that was read, so that a check of its owner can not be raced.
  virtual FileError read(const std::string& path, std::string& bytes,
                         FileStat* opened = nullptr) = 0;
  // O_EXCL | O_NOFOLLOW, mode 0600; all bytes written and fsynced.
  virtual FileError write_exclusive(const std::string& path, std::string_view bytes) = 0;
  // Regular files only; follows symlinks, blocks on no pipe: for content that vouches for itself.
  virtual FileError open_reader(const std::string& path, std::unique_ptr<FileReader>& reader) = 0;
  // O_EXCL | O_NOFOLLOW, mode 0666 less the umask: a file for others, not one of the cache.
  virtual FileError create_exclusive(const std::string& path,
                                     std::unique_ptr<FileWriter>& writer) = 0;
  virtual FileError rename(const std::string& from, const std::string& to) = 0;  // replaces
  virtual FileError sync_directory(const std::string& path) = 0;
  virtual FileError remove(const std::string& path) = 0;            // a file or an empty folder
  virtual FileError make_directories(const std::string& path) = 0;  // 0700; existing is success
  virtual FileError list(const std::string& path, std::vector<std::string>& names) = 0;
  virtual FileError stat(const std::string& path, FileStat& stat) = 0;  // lstat
  // Replaces one small file's modification time; used as the last-use stamp.
  virtual FileError touch(const std::string& path, std::int64_t time_ns) = 0;
  // An open-file-description lock on a file that is created if missing. `held` is empty when
  // somebody else holds it. A lock is never held on a file that has been removed, and neither fork
  // nor exec hands it to a child.
  virtual FileError try_lock(const std::string& path, std::unique_ptr<FileLock>& held) = 0;
  virtual FileError overwrite(const std::string& path, std::string_view bytes) = 0;  // in place
  virtual std::uint32_t user() const = 0;         // effective uid
  virtual std::string process_label() const = 0;  // "pid 4711 (chord-prewarm) on node7"
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const = 0;  // wall clock, since the epoch
  virtual std::int64_t steady_ns() const = 0;
  virtual void sleep_ms(std::int64_t ms) const = 0;
};

}  // namespace chord
