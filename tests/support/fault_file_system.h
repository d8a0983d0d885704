// A file layer that fails where the test says, on top of a real one: the odd answers of shared and
// full file systems.
//
//   FaultFileSystem files(real);
//   files.fail("rename", EBUSY);                 // always
//   files.fail("write_exclusive", ENOSPC, 2);    // the first two times
//   files.fail_if([](std::string_view call, const std::string& path) { return 0 or an errno; });
//   files.direct([](std::string_view call, const std::string& path) { return Fault{...}; });
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "chord/platform.h"

namespace chord::testing {

// What a call does instead of its work.
enum class Effect {
  none,
  fail,          // answers the error and does nothing
  fail_after,    // does its work and answers the error all the same
  fail_halfway,  // a write leaves a cut file and fails; elsewhere like fail
  pretend,       // answers success and does nothing: no file, nothing there, a lock of its own
  cut,           // success with fewer bytes (or names) than asked for
  flip,          // success with one bit flipped
  swap,          // success with the bytes of an earlier write
  strange_owner,
  loose_mode,
};

struct Fault {
  Effect effect = Effect::none;
  int error_number = 0;
  std::uint32_t random = 0;  // where to cut or flip
};

class FaultFileSystem final : public FileSystem {
 public:
  using Rule = std::function<int(std::string_view call, const std::string& path)>;
  using Director = std::function<Fault(std::string_view call, const std::string& path)>;

  explicit FaultFileSystem(FileSystem& real) : real_(real) {}

  void fail(const std::string& call, int error_number, int times = std::numeric_limits<int>::max());
  void fail_if(Rule rule);
  void direct(Director director);
  void heal();
  // Every write is done in two halves with a pause before each.
  void slow_writes(std::int64_t pause_ms, const Clock& clock);
  enum class Locks { real, always_taken, never_exclusive };
  void set_locks(Locks locks) { locks_ = locks; }
  void set_user(std::uint32_t user) { user_ = user; }

  int calls(const std::string& call) const;

  FileError read(const std::string& path, std::string& bytes, FileStat* opened) override;
  FileError write_exclusive(const std::string& path, std::string_view bytes) override;
  // Their pieces are the calls "stream_read", "stream_write" and "stream_finish".
  FileError open_reader(const std::string& path, std::unique_ptr<FileReader>& reader) override;
  FileError create_exclusive(const std::string& path, std::unique_ptr<FileWriter>& writer) override;
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
  using Work = std::function<FileError()>;

  Fault next_fault(const std::string& call, const std::string& path);
  FileError perform(const std::string& call, const std::string& path, const Work& work);
  FileError write(const std::string& call, const std::string& path, std::string_view bytes,
                  const std::function<FileError(std::string_view)>& work);
  FileError write_slowly(const std::string& path, std::string_view bytes);
  void spoil(const Fault& fault, std::string& bytes);
  class FaultReader;
  class FaultWriter;
  FileError fault(const std::string& call, const std::string& path);

  FileSystem& real_;
  mutable std::mutex mutex_;
  std::map<std::string, Failure> failures_;
  std::map<std::string, int> calls_;
  Rule rule_;
  Director director_;
  std::vector<std::string> written_;  // a few earlier writes, for swap
  std::int64_t pause_ms_ = 0;
  const Clock* clock_ = nullptr;
  Locks locks_ = Locks::real;
  std::optional<std::uint32_t> user_;
};

}  // namespace chord::testing
