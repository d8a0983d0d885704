// What cmake --install leaves: everything that a user needs, and no trace of where it was built.
#include "tests/packaging/installed.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "chord/version.h"

namespace chord::packaging_test {
namespace {

namespace fs = std::filesystem;

// "chord/abi/layout.h": relative to include/.
std::vector<std::string> public_headers() {
  const fs::path root = CHORD_SOURCE_DIR "/include";
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), root).string());
  return names;
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.is_symlink()) paths.push_back(entry.path().string());
  return paths;
}

bool is_text(const std::string& bytes) { return bytes.find('\0') == std::string::npos; }

// So that a change can not pass by what a machine lacks.
TEST(Packaging, OfEveryChangeIsTestedWhole) {
  EXPECT_NE(read_file(CHORD_SOURCE_DIR "/.ci/run")
                .find("\nexport " + std::string(kCompleteVariable) + "=1\n"),
            std::string::npos);
}

TEST(InstalledTree, HasEveryPublicHeaderAndNoOther) {
  CHORD_NEEDS_INSTALLED_TREE();
  const std::vector<std::string> headers = public_headers();
  EXPECT_GT(headers.size(), 15u);
  for (const std::string& header : headers)
    EXPECT_EQ(read_file(tree.path("include/" + header)),
              read_file(CHORD_SOURCE_DIR "/include/" + header))
        << header;
  EXPECT_EQ(files_of(tree.path("include")).size(), headers.size());
}

TEST(InstalledTree, HeadersNeedNothingElse) {
  CHORD_NEEDS_INSTALLED_TREE();
  const ScratchFolder scratch;
  std::string source;
  for (const std::string& header : public_headers()) source += "#include <" + header + ">\n";
  write_file(scratch.path("all.cpp"), source);
  const Outcome compiled =
      shell("'" CHORD_CXX_COMPILER "' -std=c++20 -Wall -Wextra -Werror -I" + tree.path("include") +
            " -fsyntax-only " + scratch.path("all.cpp"));
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
}

// Older C++ than the library's own, and every C that has inline functions.
TEST(InstalledTree, CHeaderCompilesAlone) {
  CHORD_NEEDS_PROGRAMS("cc");
  CHORD_NEEDS_INSTALLED_TREE();
  const ScratchFolder scratch;
  const std::string flags = " -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I" +
                            tree.path("include") + " " + scratch.path("alone");
  write_file(scratch.path("alone.c"), "#include <chord/chord.h>\n");
  write_file(scratch.path("alone.cpp"), "#include <chord/chord.h>\n");
  for (const char* standard : {"c99", "c11", "c17"}) {
    const Outcome compiled = shell(std::string("cc -std=") + standard + flags + ".c");
    EXPECT_EQ(compiled.exit_code, 0) << standard << "\n" << compiled.err;
  }
  for (const char* standard : {"c++11", "c++14", "c++20"}) {
    const Outcome compiled =
        shell(std::string("'" CHORD_CXX_COMPILER "' -std=") + standard + flags + ".cpp");
    EXPECT_EQ(compiled.exit_code, 0) << standard << "\n" << compiled.err;
  }
}

TEST(InstalledTree, HasTheSharedLibraryUnderItsThreeNames) {
  CHORD_NEEDS_INSTALLED_TREE();
  const std::string full = std::string("libchord_jit.so.") + kVersionText;
  EXPECT_FALSE(fs::is_symlink(tree.library(full)));
  EXPECT_TRUE(fs::is_regular_file(tree.library(full)));
  const std::string named = "libchord_jit.so." + interface_version();
  EXPECT_EQ(fs::read_symlink(tree.library(named)), full);
  EXPECT_EQ(fs::read_symlink(tree.library("libchord_jit.so")), named);
}

TEST(InstalledTree, HasTheStaticLibrary) {
  CHORD_NEEDS_INSTALLED_TREE();
  EXPECT_TRUE(fs::is_regular_file(tree.library("libchord_jit.a")));
}

TEST(InstalledTree, HasReadmeAndLicense) {
  CHORD_NEEDS_INSTALLED_TREE();
  for (const char* name : {"README.md", "LICENSE"})
    EXPECT_EQ(read_file(tree.path("share/doc/chord_jit/") + name),
              read_file(std::string(CHORD_SOURCE_DIR "/") + name));
}

TEST(InstalledTree, ToolsRunWhereTheyWereMovedTo) {
  CHORD_NEEDS_INSTALLED_TREE();
  for (const std::string& tool : tool_names()) {
    const Outcome outcome = tools_test::run_program(tree.path("bin/" + tool), {"--version"});
    EXPECT_EQ(outcome.out, std::string(kVersionText) + "\n") << tool << outcome.err;
  }
}

TEST(InstalledTree, HasNoOtherProgram) {
  CHORD_NEEDS_INSTALLED_TREE();
  EXPECT_EQ(files_of(tree.path("bin")).size(), tool_names().size());
}

TEST(InstalledTree, NamesNoFolderOfTheBuild) {
  CHORD_NEEDS_INSTALLED_TREE();
  const bool has_debug_information = *CHORD_SANITIZE != '\0';
  for (const std::string& path : files_of(tree.prefix)) {
    const std::string bytes = read_file(path);
    if (has_debug_information && !is_text(bytes)) continue;
    for (const std::string& folder :
         {std::string(CHORD_SOURCE_DIR), std::string(CHORD_BINARY_DIR), tree.installed_to})
      EXPECT_EQ(bytes.find(folder), std::string::npos) << path << " names " << folder;
  }
}

TEST(InstalledTree, HasAManPageForEveryTool) {
  CHORD_NEEDS_INSTALLED_TREE();
  for (const std::string& tool : tool_names())
    EXPECT_NE(read_file(tree.path("share/man/man1/" + tool + ".1")).find(".SH OPTIONS\n"),
              std::string::npos)
        << tool;
  EXPECT_EQ(files_of(tree.path("share/man")).size(), tool_names().size());
}

TEST(InstalledTree, ManPagesAreRoffWithoutWarnings) {
  CHORD_NEEDS_PROGRAMS("groff");
  CHORD_NEEDS_INSTALLED_TREE();
  for (const std::string& tool : tool_names()) {
    const Outcome outcome =
        shell("groff -man -ww -z -Tascii " + tree.path("share/man/man1/" + tool + ".1"));
    EXPECT_EQ(outcome.out + outcome.err, "") << tool;
    EXPECT_EQ(outcome.exit_code, 0) << tool;
  }
}

}  // namespace
}  // namespace chord::packaging_test
