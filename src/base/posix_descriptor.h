// A file descriptor with an owner, and the loops that interrupted and short calls need.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "chord/platform.h"
#include "src/base/posix_calls.h"

namespace chord::base {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1, const SystemCalls& calls = SystemCalls::real())
      : fd_(fd), calls_(&calls) {}
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), calls_(other.calls_) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // The answer matters after a write: NFS reports a full disk here. Never repeated on EINTR, since
  // Linux has freed the number by then.
  int close() { return fd_ >= 0 ? calls_->close(std::exchange(fd_, -1)) : 0; }

 private:
  int fd_;
  const SystemCalls* calls_;
};

template <class Call>
auto uninterrupted(Call call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

// False with errno set where a part could not be written.
inline bool write_all(int fd, std::string_view bytes,
                      const SystemCalls& calls = SystemCalls::real()) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return calls.write(fd, bytes.data(), bytes.size()); });
    if (written == 0) errno = EIO;  // no progress and no reason: not to be tried for ever
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

inline FileError file_error(std::string_view call, const std::string& path) {
  return FileError{errno, std::string(call), path};
}

}  // namespace chord::base
