// A file layer that notes what is removed through it, and in a dry run changes nothing: so a dry
// run of the pruner is the pruner itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chord/platform.h"

namespace chord::tools {

struct Removal {
  std::string path;
  std::uint64_t bytes = 0;
};

class RemovalRecorder final : public FileSystem {
 public:
  RemovalRecorder(FileSystem& files, bool dry_run) : files_(files), dry_run_(dry_run) {}

  // Files, in their order; folders that have become empty are not told.
  const std::vector<Removal>& removals() const { return removals_; }

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
  // In a dry run nothing is locked: the folder's own lock counts as taken by this process, that of
  // a key as held by another, so that it stays.
  FileError try_lock(const std::string& path, std::unique_ptr<FileLock>& held) override;
  FileError overwrite(const std::string& path, std::string_view bytes) override;
  std::uint32_t user() const override { return files_.user(); }
  std::string process_label() const override { return files_.process_label(); }

 private:
  FileSystem& files_;
  bool dry_run_;
  std::vector<Removal> removals_;
};

}  // namespace chord::tools
