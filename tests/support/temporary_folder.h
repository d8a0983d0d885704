// An empty folder for one test, removed afterwards. In memory where that is possible: a test that
// publishes thousands of files waits for thousands of fsyncs on a disk.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace chord::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string base = std::filesystem::temp_directory_path().string();
    if (::access("/dev/shm", W_OK | X_OK) == 0) base = "/dev/shm";
    std::string pattern = base + "/chord-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data()) == nullptr ? std::string() : pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace chord::testing
