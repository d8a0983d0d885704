// nvdisasm: where it is looked for, and what becomes of one that fails. Stands in for it: scripts.
#include "src/sass/disassembler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/temporary_folder.h"

namespace chord::sass {
namespace {

namespace fs = std::filesystem;
using chord::testing::TemporaryFolder;

EnvironmentLookup environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto known = variables.find(name);
    if (known == variables.end()) return std::nullopt;
    return known->second;
  };
}

std::string add_script(const TemporaryFolder& folder, const std::string& name,
                       const std::string& body) {
  const std::string path = folder / name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

TEST(FindNvdisasm, TheOneThatIsNamedAloneCounts) {
  const TemporaryFolder folder;
  const std::string named = add_script(folder, "named/tool", "");
  add_script(folder, "path/nvdisasm", "");
  const std::string path = folder / "path";
  EXPECT_EQ(*find_nvdisasm(environment_of({{"CHORD_NVDISASM", named}, {"PATH", path}})), named);
  const auto missing =
      find_nvdisasm(environment_of({{"CHORD_NVDISASM", folder / "absent"}, {"PATH", path}}));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::unavailable);
  EXPECT_NE(missing.error().found.find(folder / "absent"), std::string::npos);
  EXPECT_NE(missing.error().help.find("pip install nvidia-cuda-nvdisasm"), std::string::npos);
}

TEST(FindNvdisasm, LooksAlongPathForAProgram) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "one/nvdisasm");  // a folder of that name
  std::ofstream(folder / "text") << "";
  fs::create_directories(folder / "two");
  std::ofstream(folder / "two/nvdisasm") << "no program";
  const std::string third = add_script(folder, "three/nvdisasm", "");
  const std::string path =
      fmt::format("{}:{}:{}", folder / "one", folder / "two", folder / "three");
  EXPECT_EQ(*find_nvdisasm(environment_of({{"PATH", path}, {"CHORD_NVDISASM", ""}})), third);
}

TEST(FindNvdisasm, NeverLooksIntoTheCurrentFolder) {
  for (const std::string& candidate : nvdisasm_candidates(environment_of({{"PATH", ":.:bin::"}})))
    EXPECT_EQ(candidate[0], '/') << candidate;
}

TEST(FindNvdisasm, KnowsWherePipPutsTheWheel) {
  const TemporaryFolder folder;
  for (const char* variable : {"VIRTUAL_ENV", "HOME"}) {
    const std::string prefix = std::string(variable) == "HOME" ? "home/.local" : "venv";
    const std::string wheel =
        add_script(folder, prefix + "/lib/python3.11/site-packages/nvidia/cu13/bin/nvdisasm", "");
    const std::string value = folder / (std::string(variable) == "HOME" ? "home" : "venv");
    const auto candidates = nvdisasm_candidates(environment_of({{variable, value}}));
    EXPECT_NE(std::find(candidates.begin(), candidates.end(), wheel), candidates.end()) << variable;
  }
}

TEST(Disassemble, GivesTheProgramTheCubinInAFileThatGoesAway) {
  const TemporaryFolder folder;
  const std::string tool = add_script(
      folder, "nvdisasm", "/bin/cat \"$2\"; echo \"$1\"; echo \"$2\" > " + (folder / "name"));
  const std::string cubin(
      "\x7f"
      "ELF\0 with a NUL\n",
      17);
  const auto text = disassemble(tool, cubin);
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_EQ(*text, cubin + "-c\n");
  std::string name;
  std::ifstream(folder / "name") >> name;
  EXPECT_EQ(name[0], '/');
  EXPECT_FALSE(fs::exists(name)) << name;
}

TEST(Disassemble, AProgramThatFailsIsQuoted) {
  const TemporaryFolder folder;
  const std::string tool =
      add_script(folder, "nvdisasm", "echo half a text; echo invalid ELF >&2; exit 3");
  const auto text = disassemble(tool, "x");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::unavailable);
  EXPECT_EQ(text.error().found, "it ended with 3: invalid ELF\n");
  EXPECT_NE(text.error().help.find("pip install"), std::string::npos);
}

TEST(Disassemble, NothingAndNoProgramAreErrors) {
  const TemporaryFolder folder;
  EXPECT_EQ(disassemble(add_script(folder, "nvdisasm", ""), "x").error().found,
            "it printed nothing");
  EXPECT_FALSE(disassemble(folder / "absent", "x").ok());
}

TEST(Disassemble, AProgramThatHangsIsEnded) {
  const TemporaryFolder folder;
  const auto text = disassemble(add_script(folder, "nvdisasm", "/bin/sleep 60"), "x",
                                std::chrono::milliseconds(100));
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().found, "it was not done in time");
}

}  // namespace
}  // namespace chord::sass
