// A tar.zst read member by member through libarchive. Believes nothing: any warning of the library
// is an error, a name is text for people, and a member yields as many bytes as the caller asked for
// or an error. Restricted to tar behind exactly one zstd filter; starts no program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cache/printable.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

struct ArchiveMember {
  std::string name;
  std::uint64_t size = 0;
  std::string why_no_file;  // "a symbolic link"; empty for a regular file
};

class ArchiveReader {
 public:
  static Result<ArchiveReader> open(const std::string& path, FileSystem& files);
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;
  ~ArchiveReader();

  // The next member; false at the end.
  Result<bool> next(ArchiveMember& member);
  // The content of the member, which must have exactly `size` bytes.
  Status read(std::uint64_t size, std::string& bytes);

 private:
  struct Source;
  explicit ArchiveReader(std::unique_ptr<Source> source);
  Error broken() const;

  std::unique_ptr<Source> source_;
};

}  // namespace chord::cache
