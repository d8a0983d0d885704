// The real calls; see posix_calls.h.
#include "src/base/posix_calls.h"

#include <unistd.h>

#include <cstdio>

namespace chord::base {

const SystemCalls& SystemCalls::real() {
  static const SystemCalls calls;
  return calls;
}

int SystemCalls::open(const char* path, int flags, mode_t mode) const {
  return ::open(path, flags, mode);
}
int SystemCalls::close(int fd) const { return ::close(fd); }
ssize_t SystemCalls::read(int fd, void* bytes, std::size_t size) const {
  return ::read(fd, bytes, size);
}
ssize_t SystemCalls::write(int fd, const void* bytes, std::size_t size) const {
  return ::write(fd, bytes, size);
}
int SystemCalls::fsync(int fd) const { return ::fsync(fd); }
int SystemCalls::fstat(int fd, struct stat* answer) const { return ::fstat(fd, answer); }
int SystemCalls::stat(const char* path, struct stat* answer) const { return ::stat(path, answer); }
int SystemCalls::lstat(const char* path, struct stat* answer) const {
  return ::lstat(path, answer);
}
int SystemCalls::mkdir(const char* path, mode_t mode) const { return ::mkdir(path, mode); }
int SystemCalls::rename(const char* from, const char* to) const { return ::rename(from, to); }
int SystemCalls::remove(const char* path) const { return std::remove(path); }
int SystemCalls::set_times(const char* path, const timespec times[2]) const {
  return ::utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}
DIR* SystemCalls::fdopendir(int fd) const { return ::fdopendir(fd); }
dirent* SystemCalls::readdir(DIR* stream) const { return ::readdir(stream); }
int SystemCalls::closedir(DIR* stream) const { return ::closedir(stream); }
int SystemCalls::lock(int fd, struct flock* range) const { return ::fcntl(fd, F_OFD_SETLK, range); }

}  // namespace chord::base
