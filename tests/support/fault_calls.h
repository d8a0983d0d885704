// System calls that fail, stutter or come up short where the test says, below the real file layer.
//
//   FaultCalls calls;
//   base::PosixFileSystem files(calls);
//   calls.fail("fsync", EIO);        // the next one; a third argument says how many
//   calls.most_bytes = 1;            // of one read or write
//   calls.room = 1000;               // bytes until the disk is full
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "src/base/posix_calls.h"

namespace chord::testing {

class FaultCalls final : public base::SystemCalls {
 public:
  static constexpr int kAlways = std::numeric_limits<int>::max();

  void fail(const std::string& call, int error_number, int times = 1) {
    failures_[call] = {error_number, times};
  }
  void heal() { failures_.clear(); }
  int count(const std::string& call) const { return counts_[call]; }

  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
  mutable std::atomic<std::int64_t> room{std::numeric_limits<std::int64_t>::max()};

  int open(const char* path, int flags, mode_t mode) const override {
    return fails("open") ? -1 : SystemCalls::open(path, flags, mode);
  }
  // As the kernel does: the number is free afterwards, whatever the answer.
  int close(int fd) const override {
    const int answer = SystemCalls::close(fd);
    return fails("close") ? -1 : answer;
  }
  ssize_t read(int fd, void* bytes, std::size_t size) const override {
    return fails("read") ? -1 : SystemCalls::read(fd, bytes, std::min(size, most_bytes));
  }
  ssize_t write(int fd, const void* bytes, std::size_t size) const override {
    if (fails("write")) return -1;
    const std::int64_t left = room;
    if (left <= 0) return errno = ENOSPC, -1;
    const ssize_t written =
        SystemCalls::write(fd, bytes, std::min({size, most_bytes, static_cast<std::size_t>(left)}));
    if (written > 0) room -= written;
    return written;
  }
  int fsync(int fd) const override { return fails("fsync") ? -1 : SystemCalls::fsync(fd); }
  int fstat(int fd, struct stat* answer) const override {
    return fails("fstat") ? -1 : SystemCalls::fstat(fd, answer);
  }
  int stat(const char* path, struct stat* answer) const override {
    return fails("stat") ? -1 : SystemCalls::stat(path, answer);
  }
  int lstat(const char* path, struct stat* answer) const override {
    return fails("lstat") ? -1 : SystemCalls::lstat(path, answer);
  }
  int mkdir(const char* path, mode_t mode) const override {
    return fails("mkdir") ? -1 : SystemCalls::mkdir(path, mode);
  }
  int rename(const char* from, const char* to) const override {
    return fails("rename") ? -1 : SystemCalls::rename(from, to);
  }
  int remove(const char* path) const override {
    return fails("remove") ? -1 : SystemCalls::remove(path);
  }
  int set_times(const char* path, const timespec times[2]) const override {
    return fails("utimensat") ? -1 : SystemCalls::set_times(path, times);
  }
  DIR* fdopendir(int fd) const override {
    return fails("fdopendir") ? nullptr : SystemCalls::fdopendir(fd);
  }
  dirent* readdir(DIR* stream) const override {
    return fails("readdir") ? nullptr : SystemCalls::readdir(stream);
  }
  int lock(int fd, struct flock* range) const override {
    return fails("lock") ? -1 : SystemCalls::lock(fd, range);
  }

 private:
  struct Failure {
    int error_number = 0;
    int times = 0;
  };

  bool fails(const std::string& call) const {
    ++counts_[call];
    const auto failure = failures_.find(call);
    if (failure == failures_.end() || failure->second.times <= 0) return false;
    --failure->second.times;
    errno = failure->second.error_number;
    return true;
  }

  mutable std::map<std::string, Failure> failures_;
  mutable std::map<std::string, int> counts_;
};

}  // namespace chord::testing
