// While it lives, writing to a connection that the other side has closed raises no SIGPIPE in this
// thread: the libraries that write for us do not ask for that, and the signal would end the job.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace chord::cache {

class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&own_);
    ::sigaddset(&own_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &own_, &before_);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  ~SigpipeGuard() {
    constexpr timespec kAtOnce{};
    if (!was_pending_) (void)::sigtimedwait(&own_, nullptr, &kAtOnce);  // ours, if there is one
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t own_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace chord::cache
