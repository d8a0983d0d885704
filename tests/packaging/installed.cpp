// Installs and moves the tree, and runs the shell.
#include "tests/packaging/installed.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "chord/version.h"

namespace chord::packaging_test {
namespace {

namespace fs = std::filesystem;

InstalledTree install_and_move(const ScratchFolder& scratch) {
  InstalledTree tree;
  tree.installed_to = scratch.path("first");
  const Outcome done =
      shell("cmake --install '" CHORD_BINARY_DIR "' --prefix " + tree.installed_to);
  if (done.exit_code != 0) {
    tree.fault = "cmake --install: " + done.out + done.err;
    return tree;
  }
  tree.prefix = scratch.path("moved/to/another");
  fs::create_directories(scratch.path("moved/to"));
  fs::rename(tree.installed_to, tree.prefix);
  return tree;
}

}  // namespace

std::string InstalledTree::library(const std::string& name) const {
  return prefix + "/" CHORD_LIBDIR "/" + name;
}

const InstalledTree& installed_tree() {
  static const ScratchFolder scratch;
  static const InstalledTree tree = install_and_move(scratch);
  return tree;
}

Outcome shell(const std::string& command, Environment environment) {
  environment["LC_ALL"] = "C";
  return tools_test::run_program("/bin/sh", {"-c", command}, environment);
}

std::string interface_version() {
  return kVersionMajor == 0 ? "0." + std::to_string(kVersionMinor) : std::to_string(kVersionMajor);
}

bool nothing_may_be_skipped() { return std::getenv(kCompleteVariable) != nullptr; }

std::string missing_program(std::initializer_list<const char*> programs) {
  for (const char* program : programs)
    if (shell(std::string("command -v ") + program).exit_code != 0) return program;
  return "";
}

std::vector<std::string> tool_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(CHORD_SOURCE_DIR "/tools")) {
    std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || name.rfind("chord_", 0) != 0) continue;
    std::replace(name.begin(), name.end(), '_', '-');
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace chord::packaging_test
