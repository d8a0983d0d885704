// Child processes of a test: the same binary started anew with arguments (its main answers them),
// or a fork that runs a function. Each is killed and reaped when its object ends.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace chord::testing {

class ChildProcess {
 public:
  static ChildProcess start_self(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    static char program[] = "/proc/self/exe";
    argv.push_back(program);
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execv(program, argv.data());
      ::_exit(127);
    }
    return ChildProcess(pid);
  }

  static ChildProcess run(const std::function<int()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(body());
    return ChildProcess(pid);
  }

  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    (void)wait();
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // The exit status, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// Children that inherit wait_fd() start together when the parent calls open().
class Barrier {
 public:
  Barrier() {
    int ends[2] = {-1, -1};
    if (::pipe(ends) == 0) ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    read_end_ = ends[0];
    write_end_ = ends[1];
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier() {
    open();
    ::close(read_end_);
  }

  int wait_fd() const { return read_end_; }
  void open() {
    if (write_end_ >= 0) ::close(std::exchange(write_end_, -1));
  }
  static void wait(int fd) {
    char byte;
    while (::read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  int read_end_;
  int write_end_;
};

}  // namespace chord::testing
