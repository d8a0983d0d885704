// See archive_writer.h.
#include "cache/bundle/archive_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "cache/key.h"
#include "cache/layout.h"

namespace chord::cache {
namespace {

// A cubin hardly gets smaller above it, and the time grows.
constexpr const char* kLevel = "9";
constexpr int kNameTries = 16;
constexpr int kMemberMode = 0644;
constexpr int kBlockBytes = 64 << 10;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Unlike any other's of this moment; one that a killed process left is caught by O_EXCL.
std::string temporary_path(const std::string& path, const FileSystem& files) {
  static std::atomic<std::uint64_t> calls{0};
  const std::string seed = fmt::format("{} {} {}", files.process_label(), path, ++calls);
  return fmt::format("{}/{}{}", folder_of(path), Layout::kTemporaryPrefix, content_name(seed));
}

struct EntryFree {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

}  // namespace

// libarchive keeps its address.
struct ArchiveWriter::Target {
  explicit Target(FileSystem& layer) : files(layer) {}
  ~Target() {
    is_abandoned = true;
    if (archive != nullptr) {
      (void)archive_write_close(archive);  // freeing one that has failed leaves its buffer behind
      archive_write_free(archive);
    }
    file.reset();
    if (!temporary.empty()) (void)files.remove(temporary);
  }

  static la_ssize_t write(struct archive* archive, void* self, const void* bytes,
                          std::size_t size) {
    auto& target = *static_cast<Target*>(self);
    if (target.is_abandoned) return static_cast<la_ssize_t>(size);  // the rest goes nowhere
    target.error = target.file->write({static_cast<const char*>(bytes), size});
    if (target.error) {
      archive_set_error(archive, target.error.error_number, "%s", target.error.message().c_str());
      return ARCHIVE_FATAL;
    }
    target.written += size;
    return static_cast<la_ssize_t>(size);
  }

  FileSystem& files;
  std::string path;
  std::string temporary;  // empty when there is none to remove
  std::unique_ptr<FileWriter> file;
  std::uint64_t written = 0;
  bool is_abandoned = false;
  FileError error;
  struct archive* archive = nullptr;
};

ArchiveWriter::ArchiveWriter(std::unique_ptr<Target> target) : target_(std::move(target)) {}
ArchiveWriter::ArchiveWriter(ArchiveWriter&&) noexcept = default;
ArchiveWriter::~ArchiveWriter() = default;

Error ArchiveWriter::failure(std::string found) const {
  return Error{ErrorCode::io_error, fmt::format("export bundle {}", target_->path),
               std::move(found), ""};
}

Error ArchiveWriter::broken() const {
  if (target_->error) return failure(target_->error.message());
  const char* text = archive_error_string(target_->archive);
  return failure(text != nullptr ? text : "libarchive failed");
}

Status ArchiveWriter::check_target(const std::string& path, FileSystem& files) {
  const std::string asked = fmt::format("export bundle {}", path);
  if (path.empty() || path.back() == '/')
    return Error{ErrorCode::invalid_argument, asked, "that is no name of a file", "name a file"};
  FileStat stat;
  if (const FileError error = files.stat(path, stat))
    return Error{ErrorCode::io_error, asked, error.message(), ""};
  if (!stat.exists || stat.is_regular) return {};
  const char* found = stat.is_directory ? "it is a folder"
                      : stat.is_symlink ? "it is a symbolic link"
                                        : "it is there and is no regular file";
  return Error{ErrorCode::invalid_argument, asked, found,
               "name a file that is to be made or replaced"};
}

Result<ArchiveWriter> ArchiveWriter::create(const std::string& path, FileSystem& files) {
  CHORD_TRY(check_target(path, files));
  ArchiveWriter writer(std::make_unique<Target>(files));
  Target& target = *writer.target_;
  target.path = path;
  FileError error{EEXIST, "open", path};
  for (int i = 0; error.error_number == EEXIST && i < kNameTries; ++i) {
    target.temporary = temporary_path(path, files);
    error = files.create_exclusive(target.temporary, target.file);
  }
  if (error) {
    target.temporary.clear();  // somebody else's, or none
    return writer.failure(error.message());
  }
  struct archive* archive = target.archive = archive_write_new();
  if (archive == nullptr) return writer.failure("no memory");
  // A libarchive without zstd in it would answer a warning here and start a program later.
  if (archive_write_add_filter_zstd(archive) != ARCHIVE_OK)
    return writer.failure("this libarchive has no zstd in it");
  const bool is_ready =
      archive_write_set_filter_option(archive, "zstd", "compression-level", kLevel) == ARCHIVE_OK &&
      archive_write_set_format_ustar(archive) == ARCHIVE_OK &&
      archive_write_set_bytes_per_block(archive, kBlockBytes) == ARCHIVE_OK &&
      archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK &&  // no padding
      archive_write_open(archive, &target, nullptr, Target::write, nullptr) == ARCHIVE_OK;
  if (!is_ready) return writer.broken();
  return writer;
}

Status ArchiveWriter::add(const std::string& name, std::string_view bytes) {
  const std::unique_ptr<archive_entry, EntryFree> entry(archive_entry_new());
  if (!entry) return failure("no memory");
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kMemberMode);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_mtime(entry.get(), 0, 0);
  archive_entry_set_uid(entry.get(), 0);
  archive_entry_set_gid(entry.get(), 0);
  if (archive_write_header(target_->archive, entry.get()) != ARCHIVE_OK) return broken();
  while (!bytes.empty()) {
    const la_ssize_t count = archive_write_data(target_->archive, bytes.data(), bytes.size());
    if (count <= 0) return broken();
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<std::uint64_t> ArchiveWriter::finish() {
  Target& target = *target_;
  if (archive_write_close(target.archive) != ARCHIVE_OK) return broken();
  if (const FileError error = target.file->finish()) return failure(error.message());
  CHORD_TRY(check_target(target.path, target.files));
  if (const FileError error = target.files.rename(target.temporary, target.path))
    return failure(error.message());
  target.temporary.clear();
  // Without it a power cut may lose the name, never half a file: not worth failing for.
  (void)target.files.sync_directory(folder_of(target.path));
  return target.written;
}

}  // namespace chord::cache
