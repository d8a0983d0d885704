// Files read and written piece by piece: the streaming part of posix_file_system.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "src/base/posix_descriptor.h"
#include "src/base/posix_file_system.h"

namespace chord::base {
namespace {

class PosixReader final : public FileReader {
 public:
  PosixReader(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  FileError read(char* buffer, std::size_t capacity, std::size_t& filled) override {
    filled = 0;
    const ssize_t count = uninterrupted([&] { return ::read(file_.fd(), buffer, capacity); });
    if (count < 0) return file_error("read", path_);
    filled = static_cast<std::size_t>(count);
    return {};
  }

 private:
  Descriptor file_;
  std::string path_;
};

class PosixWriter final : public FileWriter {
 public:
  PosixWriter(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  FileError write(std::string_view bytes) override {
    return write_all(file_.fd(), bytes) ? FileError{} : file_error("write", path_);
  }

  FileError finish() override {
    if (uninterrupted([&] { return ::fsync(file_.fd()); }) != 0) return file_error("fsync", path_);
    return file_.close() == 0 ? FileError{} : file_error("close", path_);
  }

 private:
  Descriptor file_;
  std::string path_;
};

}  // namespace

FileError PosixFileSystem::open_reader(const std::string& path,
                                       std::unique_ptr<FileReader>& reader) {
  reader.reset();
  Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
  if (!file.is_open()) return file_error("open", path);
  struct stat raw {};
  if (::fstat(file.fd(), &raw) != 0) return file_error("fstat", path);
  if (!S_ISREG(raw.st_mode)) return FileError{EINVAL, "read (not a regular file)", path};
  reader = std::make_unique<PosixReader>(std::move(file), path);
  return {};
}

FileError PosixFileSystem::create_exclusive(const std::string& path,
                                            std::unique_ptr<FileWriter>& writer) {
  writer.reset();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  Descriptor file(uninterrupted([&] { return ::open(path.c_str(), kFlags, kMode); }));
  if (!file.is_open()) return file_error("open", path);
  writer = std::make_unique<PosixWriter>(std::move(file), path);
  return {};
}

}  // namespace chord::base
