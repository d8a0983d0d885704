// The system calls of the file layer, as one small seam: each answers as the call of its name does,
// -1 (or a null pointer) with errno. Tests derive from it to interrupt, shorten and refuse calls;
// the library uses `real()`. One indirect call each, beside a trip into the kernel.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace chord::base {

class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  static const SystemCalls& real();

  virtual int open(const char* path, int flags, mode_t mode) const;
  virtual int close(int fd) const;
  virtual ssize_t read(int fd, void* bytes, std::size_t size) const;
  virtual ssize_t write(int fd, const void* bytes, std::size_t size) const;
  virtual int fsync(int fd) const;
  virtual int fstat(int fd, struct stat* answer) const;
  virtual int stat(const char* path, struct stat* answer) const;
  virtual int lstat(const char* path, struct stat* answer) const;
  virtual int mkdir(const char* path, mode_t mode) const;
  virtual int rename(const char* from, const char* to) const;
  virtual int remove(const char* path) const;  // a file or an empty folder
  virtual int set_times(const char* path, const timespec times[2]) const;  // of a link itself
  virtual DIR* fdopendir(int fd) const;
  virtual dirent* readdir(DIR* stream) const;
  virtual int closedir(DIR* stream) const;
  virtual int lock(int fd, struct flock* range) const;  // F_OFD_SETLK
};

}  // namespace chord::base
