// A file layer in memory: what a POSIX file system answers, without a kernel in between. For tests
// that need thousands of folders. Time is the clock's; locks are of the process. One thread.
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "chord/platform.h"

namespace chord::testing {

class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(const Clock& clock) : clock_(clock) {}

  void change_mode(const std::string& path, std::uint32_t mode);

  FileError read(const std::string& path, std::string& bytes, FileStat* opened) override;
  FileError write_exclusive(const std::string& path, std::string_view bytes) override;
  // Nothing of the cache streams.
  FileError open_reader(const std::string& path, std::unique_ptr<FileReader>&) override {
    return {ENOTSUP, "open_reader", path};
  }
  FileError create_exclusive(const std::string& path, std::unique_ptr<FileWriter>&) override {
    return {ENOTSUP, "create_exclusive", path};
  }
  FileError rename(const std::string& from, const std::string& to) override;
  FileError sync_directory(const std::string& path) override;
  FileError remove(const std::string& path) override;
  FileError make_directories(const std::string& path) override;
  FileError list(const std::string& path, std::vector<std::string>& names) override;
  FileError stat(const std::string& path, FileStat& stat) override;
  FileError touch(const std::string& path, std::int64_t time_ns) override;
  FileError try_lock(const std::string& path, std::unique_ptr<FileLock>& held) override;
  FileError overwrite(const std::string& path, std::string_view bytes) override;
  std::uint32_t user() const override { return 1000; }
  std::string process_label() const override { return "pid 1 (test) on memory"; }

 private:
  struct Node {
    bool is_directory = false;
    std::uint32_t mode = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    std::uint64_t number = 0;  // of a file, for locks: a new one for each that is made
    std::string bytes;
  };

  Node* find(const std::string& path);
  // 0, or why nothing can be made at a path.
  int refusal(const std::string& path);
  Node& add(const std::string& path, bool is_directory);
  FileStat to_stat(const Node& node) const;

  const Clock& clock_;
  std::map<std::string, Node> nodes_;  // by path; the root is always there
  std::uint64_t made_ = 0;
  std::shared_ptr<std::set<std::uint64_t>> locked_ = std::make_shared<std::set<std::uint64_t>>();
};

}  // namespace chord::testing
