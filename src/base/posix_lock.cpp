// PosixFileSystem::try_lock. Open-file-description locks belong to the open file, not to the
// process, so two threads exclude each other and closing another descriptor of the file drops
// nothing. The price: a forked child shares the open file and would keep its parent's lock alive.
// Therefore every lock descriptor stands in a table that the child closes at once, and a release
// unlocks explicitly instead of trusting the close.
//
// A holder may remove its lock file. Whoever had opened the file before gets the lock of a file
// without a name afterwards; such a lock excludes nobody and is tried again on the new file.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "src/base/posix_descriptor.h"
#include "src/base/posix_file_system.h"

namespace chord::base {
namespace {

constexpr int kTries = 100;

// Descriptor + 1 of every lock, 0 in a free slot. Lock-free, because the child of a fork must not
// wait for a mutex of a thread that it lacks. More locks than slots are held without this
// protection; a process holds one per compile in flight.
std::array<std::atomic<int>, 1024> lock_slots{};

void close_locks_in_child() {
  for (auto& slot : lock_slots) {
    const int taken = slot.exchange(0);
    if (taken != 0) ::close(taken - 1);
  }
}

std::atomic<int>* register_lock(int fd) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_locks_in_child);
  (void)registered;
  for (auto& slot : lock_slots) {
    int expected = 0;
    if (slot.compare_exchange_strong(expected, fd + 1)) return &slot;
  }
  return nullptr;
}

class OpenFileLock final : public FileLock {
 public:
  OpenFileLock(int fd, const SystemCalls& calls)
      : calls_(calls), fd_(fd), process_(::getpid()), slot_(register_lock(fd)) {}
  OpenFileLock(const OpenFileLock&) = delete;
  OpenFileLock& operator=(const OpenFileLock&) = delete;

  ~OpenFileLock() override {
    if (process_ != ::getpid()) return;  // a copy in a forked child, already closed
    struct flock range {};
    range.l_type = F_UNLCK;
    range.l_whence = SEEK_SET;
    (void)uninterrupted([&] { return calls_.lock(fd_, &range); });
    if (slot_ != nullptr) *slot_ = 0;
    (void)calls_.close(fd_);
  }

  // 0, or the errno of the refusal.
  int try_acquire() {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    const int answer = uninterrupted([&] { return calls_.lock(fd_, &range); });
    return answer == 0 ? 0 : errno;
  }

  bool has_a_name() const {
    struct stat raw {};
    return uninterrupted([&] { return calls_.fstat(fd_, &raw); }) == 0 && raw.st_nlink > 0;
  }

 private:
  const SystemCalls& calls_;
  int fd_;
  pid_t process_;
  std::atomic<int>* slot_;
};

}  // namespace

FileError PosixFileSystem::try_lock(const std::string& path, std::unique_ptr<FileLock>& held) {
  held.reset();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const int fd = uninterrupted([&] {
      return calls_.open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                         S_IRUSR | S_IWUSR);
    });
    if (fd < 0) return file_error("open", path);
    auto lock = std::make_unique<OpenFileLock>(fd, calls_);
    const int refusal = lock->try_acquire();
    if (refusal == EAGAIN || refusal == EACCES) return {};
    if (refusal != 0) return FileError{refusal, "lock", path};
    if (!lock->has_a_name()) continue;
    held = std::move(lock);
    return {};
  }
  return {};  // others remove the file as fast as it is made: as good as held by them
}

}  // namespace chord::base
