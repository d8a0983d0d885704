// Another program, run to its end without a shell and under a deadline. Must not know which one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "chord/status.h"

namespace chord::base {

struct ProgramRun {
  int exit_code = 0;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

// Whether this user may execute the file.
bool is_program(const std::string& path);

// `path` is a file, never a name to search. Standard input is /dev/null, the environment is empty.
// A program that is not done at the deadline, or prints more than `most_bytes`, is killed with all
// of its process group, and that is an error.
Result<ProgramRun> run_program(const std::string& path, const std::vector<std::string>& arguments,
                               std::chrono::milliseconds deadline,
                               std::size_t most_bytes = std::size_t{64} << 20);

// A file that only this user may read, in the system's folder for such files; removed with the
// object.
class TemporaryFile {
 public:
  static Result<TemporaryFile> write(std::string_view bytes);

  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: nothing to remove
};

}  // namespace chord::base
