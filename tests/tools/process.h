// Runs a built tool as a process of its own, with its own cache folder and environment.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace chord::tools_test {

using Json = nlohmann::ordered_json;
using Environment = std::map<std::string, std::string>;

struct Outcome {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;

  // The one object on standard output; null (which no tool prints) when it is anything else.
  Json json() const;
};

// `environment` replaces every CHORD_* variable and adds to the rest of this process's.
Outcome run_program(const std::string& path, const std::vector<std::string>& arguments,
                    const Environment& environment = {});

// A tool of the build: run_tool("chord-explain", {"--json"}).
Outcome run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                 const Environment& environment = {});

std::string tool_path(const std::string& tool);

// "--rows 160 --json" as arguments; no quoting.
std::vector<std::string> words(const std::string& text);

// A folder that goes away with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path(const std::string& name = "") const;

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

// True when this machine's NVRTC can be asked to compile; tests that compile skip otherwise.
bool can_compile();

}  // namespace chord::tools_test
