// A file layer that fails where the test says, on top of a real one: the odd answers of shared and
// full file systems.
//
//   FaultFileSystem files(real);
//   files.fail("rename", EBUSY);                 // always
//   files.fail("write_exclusive", ENOSPC, 2);    // the first two times
//   files.fail_if([](std::string_view call, const std::string& path) { return 0 or an errno; });
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "chord/platform.h"

namespace chord::testing {

class FaultFileSystem final : public FileSystem {
 public:
  using Rule = std::function<int(std::string_view call, const std::string& path)>;

  explicit FaultFileSystem(FileSystem& real) : real_(real) {}

  void fail(const std::string& call, int error_number, int times = std::numeric_limits<int>::max());
  void fail_if(Rule rule);
  void heal();
  // Every write is done in two halves with a pause before each.
  void slow_writes(std::int64_t pause_ms, const Clock& clock);
  enum class Locks { real, always_taken, never_exclusive };
  void set_locks(Locks locks) { locks_ = locks; }
  void set_user(std::uint32_t user) { user_ = user; }

  int calls(const std::string& call) const;

  FileError read(const std::string& path, std::string& bytes, FileStat* opened) override;
  FileError write_exclusive(const std::string& path, std::string_view bytes) override;
  FileError rename(const std::string& from, const std::string& to) override;
  FileError sync_directory(const std::string& path) override;
  FileError remove(const std::string& path) override;
  FileError make_directories(const std::string& path) override;
  FileError list(const std::string& path, std::vector<std::string>& names) override;
  FileError stat(const std::string& path, FileStat& stat) override;
  FileError touch(const std::string& path, std::int64_t time_ns) override;
  FileError try_lock(const std::string& path, std::unique_ptr<FileLock>& held) override;
  FileError overwrite(const std::string& path, std::string_view bytes) override;
  std::uint32_t user() const override { return user_.value_or(real_.user()); }
  std::string process_label() const override { return real_.process_label(); }

 private:
  struct Failure {
    int error_number = 0;
    int times = 0;
  };
  FileError fault(const std::string& call, const std::string& path);

  FileSystem& real_;
  mutable std::mutex mutex_;
  std::map<std::string, Failure> failures_;
  std::map<std::string, int> calls_;
  Rule rule_;
  std::int64_t pause_ms_ = 0;
  const Clock* clock_ = nullptr;
  Locks locks_ = Locks::real;
  std::optional<std::uint32_t> user_;
};

}  // namespace chord::testing
