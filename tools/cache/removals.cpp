// See removals.h.
#include "tools/cache/removals.h"

#include <cerrno>

namespace chord::tools {

FileError RemovalRecorder::read(const std::string& path, std::string& bytes, FileStat* opened) {
  return files_.read(path, bytes, opened);
}

FileError RemovalRecorder::write_exclusive(const std::string& path, std::string_view bytes) {
  return dry_run_ ? FileError{} : files_.write_exclusive(path, bytes);
}

FileError RemovalRecorder::open_reader(const std::string& path,
                                       std::unique_ptr<FileReader>& reader) {
  return files_.open_reader(path, reader);
}

// There is no file to write piece by piece in a dry run.
FileError RemovalRecorder::create_exclusive(const std::string& path,
                                            std::unique_ptr<FileWriter>& writer) {
  return dry_run_ ? FileError{EROFS, "open", path} : files_.create_exclusive(path, writer);
}

FileError RemovalRecorder::rename(const std::string& from, const std::string& to) {
  return dry_run_ ? FileError{} : files_.rename(from, to);
}

FileError RemovalRecorder::sync_directory(const std::string& path) {
  return dry_run_ ? FileError{} : files_.sync_directory(path);
}

FileError RemovalRecorder::remove(const std::string& path) {
  FileStat stat;
  const bool is_file = !files_.stat(path, stat) && stat.exists && !stat.is_directory;
  if (!dry_run_)
    if (FileError error = files_.remove(path)) return error;
  if (is_file) removals_.push_back({path, stat.size});
  return {};
}

FileError RemovalRecorder::make_directories(const std::string& path) {
  return dry_run_ ? FileError{} : files_.make_directories(path);
}

FileError RemovalRecorder::list(const std::string& path, std::vector<std::string>& names) {
  return files_.list(path, names);
}

FileError RemovalRecorder::stat(const std::string& path, FileStat& stat) {
  return files_.stat(path, stat);
}

FileError RemovalRecorder::touch(const std::string& path, std::int64_t time_ns) {
  return dry_run_ ? FileError{} : files_.touch(path, time_ns);
}

FileError RemovalRecorder::try_lock(const std::string& path, std::unique_ptr<FileLock>& held) {
  class NoLock final : public FileLock {};
  if (!dry_run_) return files_.try_lock(path, held);
  held.reset();
  if (path.ends_with("/prune.lock")) held = std::make_unique<NoLock>();
  return {};
}

FileError RemovalRecorder::overwrite(const std::string& path, std::string_view bytes) {
  return dry_run_ ? FileError{} : files_.overwrite(path, bytes);
}

}  // namespace chord::tools
