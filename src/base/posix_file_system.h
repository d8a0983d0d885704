// The file layer of the cache on POSIX. Holds no state: one object may serve several threads.
#pragma once

#include "chord/platform.h"

namespace chord::base {

class PosixFileSystem final : public FileSystem {
 public:
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
  std::uint32_t user() const override;
  std::string process_label() const override;
};

}  // namespace chord::base
