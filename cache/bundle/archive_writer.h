// A tar.zst written member by member through libarchive, the same bytes for the same members: owner
// 0, time 0, one thread, a fixed level. (Another version of libzstd may compress otherwise.) The
// file appears whole under its name at `finish`, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

class ArchiveWriter {
 public:
  // Refuses a target that is there and is no regular file.
  static Status check_target(const std::string& path, FileSystem& files);
  // Writes to a temporary beside `path`, in a folder that must exist.
  static Result<ArchiveWriter> create(const std::string& path, FileSystem& files);
  ArchiveWriter(ArchiveWriter&&) noexcept;
  ~ArchiveWriter();  // removes the temporary of an unfinished one

  Status add(const std::string& name, std::string_view bytes);
  // The size of the file that is now at `path`.
  Result<std::uint64_t> finish();

 private:
  struct Target;
  explicit ArchiveWriter(std::unique_ptr<Target> target);
  Error failure(std::string found) const;
  Error broken() const;

  std::unique_ptr<Target> target_;
};

}  // namespace chord::cache
