// State that a child of a fork must not touch: connections, threads, and the locks around them. The
// child gets a fresh one. The parent's copy is left behind unopened: a thread that is not in the
// child may have held its lock, and nobody is there to be joined or woken.
#pragma once

#include <unistd.h>

#include <atomic>

namespace chord::cache {

template <class State>
class PerProcess {
 public:
  PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    Owned* last = owned_.load();
    if (last != nullptr && last->pid == ::getpid()) delete last;
  }

  State& get() {
    Owned* now = owned_.load();
    const pid_t pid = ::getpid();
    while (now == nullptr || now->pid != pid) {
      auto* fresh = new Owned{pid};
      if (owned_.compare_exchange_strong(now, fresh)) return fresh->state;
      delete fresh;
    }
    return now->state;
  }

 private:
  struct Owned {
    pid_t pid;
    State state{};
  };
  std::atomic<Owned*> owned_{nullptr};
};

}  // namespace chord::cache
