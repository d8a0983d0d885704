// See posix_file_system.h. Every descriptor is close-on-exec, no last path component that is a
// symbolic link is followed, interrupted calls are repeated, short writes are continued.
#include "src/base/posix_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "src/base/posix_descriptor.h"

namespace chord::base {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// Far above any cubin; keeps a wrong path from filling the memory.
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 30;

Descriptor open_file(const SystemCalls& calls, const std::string& path, int flags) {
  const int fd = uninterrupted(
      [&] { return calls.open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR); });
  return Descriptor(fd, calls);
}

FileStat to_stat(const struct stat& raw) {
  FileStat stat;
  stat.exists = true;
  stat.is_regular = S_ISREG(raw.st_mode);
  stat.is_directory = S_ISDIR(raw.st_mode);
  stat.is_symlink = S_ISLNK(raw.st_mode);
  stat.mode = raw.st_mode & 07777;
  stat.owner = raw.st_uid;
  stat.size = static_cast<std::uint64_t>(raw.st_size);
  stat.modified_ns = raw.st_mtim.tv_sec * kSecond + raw.st_mtim.tv_nsec;
  stat.changed_ns = raw.st_ctim.tv_sec * kSecond + raw.st_ctim.tv_nsec;
  return stat;
}

bool read_all(const SystemCalls& calls, int fd, std::size_t expected, std::string& bytes) {
  bytes.resize(expected);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count =
        uninterrupted([&] { return calls.read(fd, bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) return false;
    if (count == 0) break;  // it has become shorter; the reader's checksum will tell
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return true;
}

FileError sync(const SystemCalls& calls, int fd, const std::string& path) {
  const int answer = uninterrupted([&] { return calls.fsync(fd); });
  return answer == 0 ? FileError{} : file_error("fsync", path);
}

FileError write_and_close(const SystemCalls& calls, Descriptor file, const std::string& path,
                          std::string_view bytes, bool is_synced) {
  if (!write_all(file.fd(), bytes, calls)) return file_error("write", path);
  if (is_synced)
    if (FileError error = sync(calls, file.fd(), path)) return error;
  // An interrupted close has closed, and what matters has been synced.
  if (file.close() != 0 && errno != EINTR) return file_error("close", path);
  return {};
}

FileError make_directory(const SystemCalls& calls, const std::string& path) {
  if (uninterrupted([&] { return calls.mkdir(path.c_str(), S_IRWXU); }) == 0) return {};
  const FileError error = file_error("mkdir", path);
  // Another process may have been quicker; an existing folder is as good on any errno, since
  // mkdir of a folder on a read-only file system answers EROFS before EEXIST.
  struct stat raw {};
  if (uninterrupted([&] { return calls.stat(path.c_str(), &raw); }) != 0) return error;
  return S_ISDIR(raw.st_mode) ? FileError{} : FileError{ENOTDIR, "mkdir", path};
}

}  // namespace

FileError PosixFileSystem::read(const std::string& path, std::string& bytes, FileStat* opened) {
  bytes.clear();
  // O_NONBLOCK: a pipe in the place of a file must not hang the open.
  Descriptor file = open_file(calls_, path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) return file_error("open", path);
  struct stat raw {};
  if (uninterrupted([&] { return calls_.fstat(file.fd(), &raw); }) != 0)
    return file_error("fstat", path);
  if (!S_ISREG(raw.st_mode)) return FileError{EINVAL, "read (not a regular file)", path};
  if (raw.st_size > kMaxFileBytes) return FileError{EFBIG, "read", path};
  if (opened != nullptr) *opened = to_stat(raw);
  if (read_all(calls_, file.fd(), static_cast<std::size_t>(raw.st_size), bytes)) return {};
  const FileError error = file_error("read", path);
  bytes.clear();
  return error;
}

FileError PosixFileSystem::write_exclusive(const std::string& path, std::string_view bytes) {
  Descriptor file = open_file(calls_, path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.is_open()) return file_error("open", path);
  FileError error = write_and_close(calls_, std::move(file), path, bytes, true);
  if (error) (void)remove(path);
  return error;
}

FileError PosixFileSystem::overwrite(const std::string& path, std::string_view bytes) {
  Descriptor file = open_file(calls_, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
  if (!file.is_open()) return file_error("open", path);
  return write_and_close(calls_, std::move(file), path, bytes, false);
}

FileError PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (uninterrupted([&] { return calls_.rename(from.c_str(), to.c_str()); }) != 0)
    return file_error("rename", to);
  return {};
}

FileError PosixFileSystem::sync_directory(const std::string& path) {
  Descriptor folder = open_file(calls_, path, O_RDONLY | O_DIRECTORY);
  if (!folder.is_open()) return file_error("open", path);
  return sync(calls_, folder.fd(), path);
}

FileError PosixFileSystem::remove(const std::string& path) {
  if (uninterrupted([&] { return calls_.remove(path.c_str()); }) != 0)
    return file_error("remove", path);
  return {};
}

// The whole path first: mostly it is there.
FileError PosixFileSystem::make_directories(const std::string& path) {
  FileError error = make_directory(calls_, path);
  if (error.error_number != ENOENT) return error;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if ((error = make_directory(calls_, path.substr(0, end)))) return error;
    if (end == std::string::npos) return {};
  }
}

FileError PosixFileSystem::list(const std::string& path, std::vector<std::string>& names) {
  names.clear();
  Descriptor folder = open_file(calls_, path, O_RDONLY | O_DIRECTORY);
  if (!folder.is_open()) return file_error("open", path);
  DIR* stream = calls_.fdopendir(folder.fd());
  if (stream == nullptr) return file_error("fdopendir", path);
  (void)folder.release();  // the stream owns it now
  errno = 0;
  while (const dirent* entry = calls_.readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const FileError error = errno != 0 ? file_error("readdir", path) : FileError{};
  (void)calls_.closedir(stream);
  std::sort(names.begin(), names.end());
  return error;
}

FileError PosixFileSystem::stat(const std::string& path, FileStat& stat) {
  stat = {};
  struct stat raw {};
  if (uninterrupted([&] { return calls_.lstat(path.c_str(), &raw); }) == 0) {
    stat = to_stat(raw);
    return {};
  }
  return errno == ENOENT ? FileError{} : file_error("lstat", path);
}

FileError PosixFileSystem::touch(const std::string& path, std::int64_t time_ns) {
  timespec time{};
  time.tv_sec = time_ns / kSecond;
  time.tv_nsec = time_ns % kSecond;
  const timespec times[2] = {{0, UTIME_OMIT}, time};
  if (uninterrupted([&] { return calls_.set_times(path.c_str(), times); }) != 0)
    return file_error("utimensat", path);
  return {};
}

std::uint32_t PosixFileSystem::user() const { return ::geteuid(); }

std::string PosixFileSystem::process_label() const {
  char host[256] = "?";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  std::string program;
  if (FILE* comm = std::fopen("/proc/self/comm", "re")) {
    char line[64] = "";
    if (std::fgets(line, sizeof line, comm) != nullptr) program = line;
    std::fclose(comm);
  }
  program.erase(std::find(program.begin(), program.end(), '\n'), program.end());
  return fmt::format("pid {} ({}) on {}", ::getpid(), program.empty() ? "?" : program, host);
}

}  // namespace chord::base
