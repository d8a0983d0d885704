// One maker per key among processes: a lock file per key, with a record of who holds it, and a wait
// that ends. Only saves work: whoever can not lock, or has waited long enough, goes on without, and
// publishing stays right (publish.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cache/layout.h"
#include "chord/platform.h"

namespace chord::cache {

// Held while it lives. Its end removes the lock file first, so that none are left lying about.
class HeldKeyLock {
 public:
  HeldKeyLock(FileSystem& files, std::string path, std::unique_ptr<FileLock> lock);
  HeldKeyLock(const HeldKeyLock&) = delete;
  HeldKeyLock& operator=(const HeldKeyLock&) = delete;
  ~HeldKeyLock();

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

class KeyLocks {
 public:
  struct Outcome {
    std::unique_ptr<HeldKeyLock> lock;  // empty: go on without
    bool waited = false;
    bool answered = false;  // `is_answered` said so: nothing is left to make
  };

  KeyLocks(Layout layout, FileSystem& files, const Clock& clock, LogSink log);

  // Takes the lock of a key. While another process holds it, waits until `is_answered` says that
  // the other has published, the lock is free, or wait_ms are over. Asks once more after taking the
  // lock: the other may have published and left between the two.
  Outcome acquire(const std::string& key_name, std::int64_t wait_ms,
                  const std::function<bool()>& is_answered);

 private:
  std::string owner_of(const std::string& path);
  void say_whom_we_wait_for(const std::string& key_name, std::int64_t wait_ms);

  Layout layout_;
  FileSystem& files_;
  const Clock& clock_;
  LogSink log_;
};

}  // namespace chord::cache
