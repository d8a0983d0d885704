// The file layer of the cache on POSIX. Holds no state: one object may serve several threads.
#pragma once

#include "chord/platform.h"
#include "src/base/posix_calls.h"

namespace chord::base {

class PosixFileSystem final : public FileSystem {
 public:
  // `calls` must outlive it and the locks that it gave.
  explicit PosixFileSystem(const SystemCalls& calls = SystemCalls::real()) : calls_(calls) {}

  FileError read(const std::string& path, std::string& bytes, FileStat* opened) override;
  FileError write_exclusive(const std::string& path, std::string_view bytes) override;
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
  std::uint32_t user() const override;
  std::string process_label() const override;

 private:
  const SystemCalls& calls_;
};

}  // namespace chord::base
