// posix_spawn, two pipes read under poll, and the temporary file of an argument.
#include "src/base/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "src/base/posix_descriptor.h"

namespace chord::base {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kLate = "it was not done in time";

Error failed(const std::string& path, std::string found) {
  return Error{ErrorCode::io_error, "run " + path, std::move(found), ""};
}

struct Pipe {
  Descriptor read_end, write_end;
};

// Neither end reaches a child but by dup2, whichever thread forks.
std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Killed and reaped, with all of its group, unless it was waited for.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    uninterrupted([this] { return ::waitpid(pid_, nullptr, 0); });
  }

  // 0 or an errno.
  int start(const std::string& path, const std::vector<std::string>& arguments, int out, int err) {
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    char* const empty_environment[] = {nullptr};

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    const int error =
        ::posix_spawn(&pid_, path.c_str(), &actions, &attributes, argv.data(), empty_environment);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) pid_ = -1;
    return error;
  }

  // Empty if it has not ended by then. Looked for again and again, because its streams have ended
  // before: it is about to end.
  std::optional<int> wait_until(Steady::time_point end) {
    int status = 0;
    while (uninterrupted([&] { return ::waitpid(pid_, &status, WNOHANG); }) == 0) {
      if (Steady::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

// Appends what is there; false at the end of the stream.
bool read_some(int fd, std::string& text) {
  char buffer[1 << 16];
  const ssize_t bytes = uninterrupted([&] { return ::read(fd, buffer, sizeof buffer); });
  if (bytes > 0) text.append(buffer, static_cast<std::size_t>(bytes));
  return bytes > 0;
}

// Reads both streams to their ends. A value is what went wrong.
std::optional<std::string> read_streams(const Descriptor& out, const Descriptor& err,
                                        Steady::time_point end, std::size_t most_bytes,
                                        ProgramRun& run) {
  pollfd streams[] = {{out.fd(), POLLIN, 0}, {err.fd(), POLLIN, 0}};
  std::string* const texts[] = {&run.out, &run.err};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now()).count();
    if (left <= 0) return kLate;
    const int ready = ::poll(streams, 2, static_cast<int>(std::min<long long>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR) return std::strerror(errno);
    if (ready <= 0) continue;
    for (int i = 0; i < 2; ++i)
      if (streams[i].fd >= 0 && streams[i].revents != 0 && !read_some(streams[i].fd, *texts[i]))
        streams[i].fd = -1;  // poll passes over it
    if (run.out.size() + run.err.size() > most_bytes)
      return fmt::format("it printed more than {} bytes", most_bytes);
  }
  return std::nullopt;
}

}  // namespace

bool is_program(const std::string& path) {
  struct stat stat;
  return ::stat(path.c_str(), &stat) == 0 && S_ISREG(stat.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Result<ProgramRun> run_program(const std::string& path, const std::vector<std::string>& arguments,
                               std::chrono::milliseconds deadline, std::size_t most_bytes) {
  const Steady::time_point end = Steady::now() + deadline;
  std::optional<Pipe> out = make_pipe(), err = make_pipe();
  if (!out || !err) return failed(path, std::strerror(errno));
  Child child;
  if (const int error = child.start(path, arguments, out->write_end.fd(), err->write_end.fd()))
    return failed(path, std::strerror(error));
  out->write_end.close();
  err->write_end.close();
  ProgramRun run;
  if (const auto problem = read_streams(out->read_end, err->read_end, end, most_bytes, run))
    return failed(path, *problem);
  const std::optional<int> code = child.wait_until(end);
  if (!code) return failed(path, kLate);
  run.exit_code = *code;
  return run;
}

Result<TemporaryFile> TemporaryFile::write(std::string_view bytes) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(problem);
  std::string path = (problem ? "/tmp" : folder.string()) + "/chord-XXXXXX";
  const auto refused = [&] {
    return Error{ErrorCode::io_error, "write the temporary file " + path, std::strerror(errno),
                 "set TMPDIR to a folder with room that this user may write"};
  };
  Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.is_open()) return refused();
  TemporaryFile made(path);
  if (!write_all(file.fd(), bytes)) return refused();
  if (file.close() != 0) return refused();
  return made;
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::exchange(other.path_, std::string())) {}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace chord::base
