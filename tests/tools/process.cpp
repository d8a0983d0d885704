// fork, exec and the reading of both streams.
#include "tests/tools/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "src/cuda/nvrtc_api.h"

extern char** environ;

namespace chord::tools_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> environment_of_child(const Environment& own) {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const std::string variable = entry.substr(0, entry.find('='));
    const bool chord = variable.rfind("CHORD_", 0) == 0 && variable != "CHORD_NVRTC_LIBRARY";
    if (!chord && own.count(variable) == 0) all.push_back(entry);
  }
  for (const auto& [variable, value] : own) all.push_back(variable + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

int open_stream(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Json Outcome::json() const {
  const Json parsed = Json::parse(out, nullptr, false);
  return parsed.is_object() ? parsed : Json(nullptr);
}

Outcome run_program(const std::string& path, const std::vector<std::string>& arguments,
                    const Environment& environment) {
  const ScratchFolder scratch;
  std::vector<std::string> argv_text{path};
  argv_text.insert(argv_text.end(), arguments.begin(), arguments.end());
  std::vector<std::string> env_text = environment_of_child(environment);
  std::vector<char*> argv = pointers(argv_text);
  std::vector<char*> envp = pointers(env_text);
  const std::string out = scratch.path("out"), err = scratch.path("err");

  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open_stream(out), STDOUT_FILENO);
    dup2(open_stream(err), STDERR_FILENO);
    execve(path.c_str(), argv.data(), envp.data());
    _exit(126);
  }
  Outcome outcome;
  if (child > 0) outcome.exit_code = wait_for(child);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

std::string tool_path(const std::string& tool) { return CHORD_BINARY_DIR "/bin/" + tool; }

Outcome run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                 const Environment& environment) {
  if (environment.count("CHORD_CACHE_DIR") != 0)
    return run_program(tool_path(tool), arguments, environment);
  // Never the cache of whoever runs the tests.
  const ScratchFolder scratch;
  Environment with_cache = environment;
  with_cache["CHORD_CACHE_DIR"] = scratch.path("cache");
  return run_program(tool_path(tool), arguments, with_cache);
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "chord-tools-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchFolder::path(const std::string& name) const {
  return name.empty() ? path_ : path_ + "/" + name;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool can_compile() {
  const char* named = std::getenv("CHORD_NVRTC_LIBRARY");
  static const bool can =
      cuda::open_nvrtc(named ? std::optional<std::string>(named) : std::nullopt).ok();
  return can;
}

}  // namespace chord::tools_test
