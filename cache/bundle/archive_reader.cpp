// See archive_reader.h.
#include "cache/bundle/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace chord::cache {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

std::string why_no_file(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return "a hard link";
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return archive_entry_size_is_set(entry) ? "" : "a file without a size";
    case AE_IFLNK:
      return "a symbolic link";
    case AE_IFDIR:
      return "a folder";
    case AE_IFCHR:
    case AE_IFBLK:
      return "a device";
    case AE_IFIFO:
      return "a pipe";
    default:
      return "no file";
  }
}

}  // namespace

// libarchive keeps its address.
struct ArchiveReader::Source {
  ~Source() {
    if (archive != nullptr) archive_read_free(archive);
  }

  static la_ssize_t read(struct archive* archive, void* self, const void** block) {
    auto& source = *static_cast<Source*>(self);
    std::size_t filled = 0;
    source.error = source.file->read(source.buffer.data(), source.buffer.size(), filled);
    if (source.error) {
      archive_set_error(archive, source.error.error_number, "%s", source.error.message().c_str());
      return ARCHIVE_FATAL;
    }
    *block = source.buffer.data();
    return static_cast<la_ssize_t>(filled);
  }

  std::string path;
  std::unique_ptr<FileReader> file;
  std::vector<char> buffer = std::vector<char>(kBufferBytes);
  FileError error;
  struct archive* archive = nullptr;
};

ArchiveReader::ArchiveReader(std::unique_ptr<Source> source) : source_(std::move(source)) {}
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

Result<ArchiveReader> ArchiveReader::open(const std::string& path, FileSystem& files) {
  auto source = std::make_unique<Source>();
  source->path = path;
  if (const FileError error = files.open_reader(path, source->file))
    return Error{error.error_number == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
                 fmt::format("bundle {}", path), error.message(), "name a file of chord-cache"};
  struct archive* archive = source->archive = archive_read_new();
  if (archive == nullptr)
    return Error{ErrorCode::internal, fmt::format("bundle {}", path), "no memory", ""};
  ArchiveReader reader(std::move(source));
  // A libarchive without zstd in it would answer a warning here and start a program later.
  if (archive_read_support_filter_zstd(archive) != ARCHIVE_OK)
    return Error{ErrorCode::unsupported, fmt::format("bundle {}", path),
                 "this libarchive has no zstd in it", "use one that has"};
  if (archive_read_support_format_tar(archive) != ARCHIVE_OK ||
      archive_read_open(archive, reader.source_.get(), nullptr, Source::read, nullptr) !=
          ARCHIVE_OK)
    return reader.broken();
  // The other filter is the file itself.
  if (archive_filter_count(archive) != 2 || archive_filter_code(archive, 0) != ARCHIVE_FILTER_ZSTD)
    return Error{ErrorCode::corrupt, fmt::format("bundle {}", path), "it is no zstd file",
                 "name a file that was exported as a bundle"};
  return reader;
}

Error ArchiveReader::broken() const {
  if (source_->error)
    return Error{ErrorCode::io_error, fmt::format("bundle {}", source_->path),
                 source_->error.message(), ""};
  const char* text = archive_error_string(source_->archive);
  return Error{ErrorCode::corrupt, fmt::format("bundle {}", source_->path),
               fmt::format("it is no whole tar.zst: {}", printable(text ? text : "damaged")),
               "fetch or export it again"};
}

Result<bool> ArchiveReader::next(ArchiveMember& member) {
  archive_entry* entry = nullptr;
  const int answer = archive_read_next_header(source_->archive, &entry);
  if (answer == ARCHIVE_EOF) return false;
  if (answer != ARCHIVE_OK) return broken();
  const char* name = archive_entry_pathname(entry);
  member.name = name != nullptr ? name : "";
  member.why_no_file = why_no_file(entry);
  member.size = static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry), 0));
  return true;
}

Status ArchiveReader::read(std::uint64_t size, std::string& bytes) {
  bytes.resize(size);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const la_ssize_t count =
        archive_read_data(source_->archive, bytes.data() + filled, bytes.size() - filled);
    if (count < 0) return broken();
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  char more = 0;
  const la_ssize_t count = archive_read_data(source_->archive, &more, 1);
  if (count < 0) return broken();
  if (filled == size && count == 0) return {};
  return Error{ErrorCode::corrupt, fmt::format("bundle {}", source_->path),
               count > 0 ? fmt::format("a member has more than its {} bytes", size)
                         : fmt::format("a member ends after {} of its {} bytes", filled, size),
               ""};
}

}  // namespace chord::cache
