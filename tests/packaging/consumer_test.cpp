// Projects that use the installed library: by CMake, by the commands of README.md, in C, and by
// add_subdirectory.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/packaging/installed.h"

namespace chord::packaging_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlanned = "block_m 8\n";

// Configures a project against the installed tree; builds it, too, unless that is not asked for.
Outcome build_project(const InstalledTree& tree, const std::string& project,
                      const std::string& build, const std::string& flags = "", bool all = true) {
  const std::string configure = "cmake -S " + project + " -B " + build +
                                " -DCMAKE_PREFIX_PATH=" + tree.prefix +
                                " -DCMAKE_CXX_COMPILER='" CHORD_CXX_COMPILER "' " + flags;
  return shell(configure + (all ? " && cmake --build " + build + " --parallel 2" : ""));
}

// A project that asks for the package and then runs `text`; needs no compiler.
Outcome find_package(const InstalledTree& tree, const std::string& arguments,
                     const std::string& before = "", const std::string& after = "") {
  const ScratchFolder scratch;
  write_file(scratch.path("CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.22)\nproject(asks LANGUAGES NONE)\n" + before +
                 "\nfind_package(chord_jit " + arguments + ")\n" + after + "\n");
  return build_project(tree, scratch.path(), scratch.path("build"), "", false);
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

TEST(Consumer, CMakeFindsBothLibrariesInAMovedTree) {
  CHORD_NEEDS_A_PLAIN_BUILD();
  CHORD_NEEDS_INSTALLED_TREE();
  const ScratchFolder scratch;
  const Outcome built =
      build_project(tree, CHORD_SOURCE_DIR "/tests/consumer", scratch.path("build"));
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  for (const char* program : {"plan-shared", "plan-static"}) {
    const Outcome ran = tools_test::run_program(scratch.path("build/") + program, {});
    EXPECT_EQ(ran.out, std::string(kPlanned) + "not_found\n") << program << ran.err;
  }
}

TEST(Consumer, CIsEnoughForTheCInterface) {
  CHORD_NEEDS_A_PLAIN_BUILD();
  CHORD_NEEDS_PROGRAMS("cc");
  CHORD_NEEDS_INSTALLED_TREE();
  ASSERT_TRUE(fs::exists(tree.path("include/chord/chord.h")));
  const ScratchFolder scratch;
  const Outcome built =
      build_project(tree, CHORD_SOURCE_DIR "/tests/consumer/c", scratch.path("build"));
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  EXPECT_EQ(tools_test::run_program(scratch.path("build/plan-c"), {}).out, kPlanned);
}

TEST(Consumer, CIsBuiltByOneCommandWithPkgConfig) {
  CHORD_NEEDS_A_PLAIN_BUILD();
  CHORD_NEEDS_PROGRAMS("cc", "pkg-config");
  CHORD_NEEDS_INSTALLED_TREE();
  const ScratchFolder scratch;
  const Outcome built =
      shell("cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o " + scratch.path("app") +
                " " CHORD_SOURCE_DIR
                "/tests/consumer/c/plan.c"
                " $(pkg-config --cflags --libs chord_jit)",
            {{"PKG_CONFIG_PATH", tree.library("pkgconfig")}});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const Outcome ran =
      tools_test::run_program(scratch.path("app"), {}, {{"LD_LIBRARY_PATH", tree.library("")}});
  EXPECT_EQ(ran.out, kPlanned) << ran.err;
}

TEST(Consumer, CMakeRefusesAVersionThatIsNotThere) {
  CHORD_NEEDS_INSTALLED_TREE();
  EXPECT_EQ(find_package(tree, "0.1 REQUIRED COMPONENTS shared").exit_code, 0);
  const Outcome newer = find_package(tree, "0.2 REQUIRED COMPONENTS shared");
  EXPECT_NE(newer.exit_code, 0);
  EXPECT_NE(newer.err.find("0.2"), std::string::npos) << newer.err;
}

// Nothing is found under a prefix that no library has.
constexpr const char* kHidesLibraries = "set(CMAKE_FIND_LIBRARY_PREFIXES none-)";

TEST(Consumer, StaticSaysWhichLibrariesItLacks) {
  CHORD_NEEDS_INSTALLED_TREE();
  const Outcome asked = find_package(tree, "REQUIRED COMPONENTS static", kHidesLibraries);
  EXPECT_NE(asked.exit_code, 0);
  EXPECT_NE(asked.err.find("static lacks"), std::string::npos) << asked.err;
  EXPECT_NE(asked.err.find("sodium"), std::string::npos) << asked.err;
}

TEST(Consumer, SharedNeedsNoOtherLibrary) {
  CHORD_NEEDS_INSTALLED_TREE();
  const Outcome asked = find_package(tree, "REQUIRED", kHidesLibraries,
                                     "if(NOT TARGET chord::chord_jit OR TARGET "
                                     "chord::chord_jit_static)\nmessage(FATAL_ERROR no)\nendif()");
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
}

TEST(Consumer, AComponentThatIsNoneIsRefused) {
  CHORD_NEEDS_INSTALLED_TREE();
  const Outcome asked = find_package(tree, "REQUIRED COMPONENTS import");
  EXPECT_NE(asked.exit_code, 0);
  EXPECT_NE(asked.err.find("not import"), std::string::npos) << asked.err;
}

// The lines of README.md that start with `start`, without it.
std::vector<std::string> readme_lines(const std::string& start) {
  const std::string text = read_file(CHORD_SOURCE_DIR "/README.md");
  std::vector<std::string> lines;
  const std::string mark = "\n" + start;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t from = at + mark.size();
    lines.push_back(text.substr(from, text.find('\n', from) - from));
  }
  return lines;
}

// Each command of README.md that calls the compiler, on its example; run with and without the
// folder of the shared library.
TEST(Consumer, CompilerCommandsOfTheReadmeWork) {
  CHORD_NEEDS_A_PLAIN_BUILD();
  CHORD_NEEDS_PROGRAMS("pkg-config");
  CHORD_NEEDS_INSTALLED_TREE();
  const std::vector<std::string> commands = readme_lines("c++ ");
  ASSERT_EQ(commands.size(), 2u);
  const ScratchFolder scratch;
  fs::copy(CHORD_SOURCE_DIR "/tools/examples/link_example.cpp", scratch.path("main.cpp"));
  for (const std::string& command : commands) {
    const bool is_static = command.find("--static") != std::string::npos;
    const Outcome built = shell("cd " + scratch.path() + " && '" CHORD_CXX_COMPILER "' " + command,
                                {{"PKG_CONFIG_PATH", tree.library("pkgconfig")}});
    ASSERT_EQ(built.exit_code, 0) << command << "\n" << built.err;
    const Outcome bare = tools_test::run_program(scratch.path("app"), {});
    EXPECT_EQ(starts_with(bare.out, "block_m 8,"), is_static) << command << "\n" << bare.err;
    const Outcome ran =
        tools_test::run_program(scratch.path("app"), {}, {{"LD_LIBRARY_PATH", tree.library("")}});
    EXPECT_TRUE(starts_with(ran.out, "block_m 8,")) << command << "\n" << ran.err;
  }
}

TEST(Consumer, CMakeLinesOfTheReadmeAreThoseOfTheConsumer) {
  const std::string consumer = read_file(CHORD_SOURCE_DIR "/tests/consumer/CMakeLists.txt");
  const std::vector<std::string> packages = readme_lines("find_package(");
  ASSERT_EQ(packages.size(), 1u);
  EXPECT_NE(consumer.find("\nfind_package(" + packages[0] + "\n"), std::string::npos);
  const std::vector<std::string> links = readme_lines("target_link_libraries(app ");
  ASSERT_GE(links.size(), 1u);
  for (const std::string& line : links)
    EXPECT_NE(consumer.find(" " + line.substr(0, line.find(')') + 1) + "\n"), std::string::npos)
        << line;
}

TEST(Consumer, PkgConfigSaysTheVersionAndNoFolderOfTheInstallation) {
  CHORD_NEEDS_PROGRAMS("pkg-config");
  CHORD_NEEDS_INSTALLED_TREE();
  const Environment where{{"PKG_CONFIG_PATH", tree.library("pkgconfig")}};
  EXPECT_EQ(shell("pkg-config --modversion chord_jit", where).out, "0.1.0\n");
  const std::string flags = shell("pkg-config --static --cflags --libs chord_jit", where).out;
  EXPECT_NE(flags.find(tree.prefix), std::string::npos) << flags;
  EXPECT_EQ(flags.find(tree.installed_to), std::string::npos) << flags;
}

TEST(Consumer, PkgConfigNamesOtherLibrariesForStaticLinkingOnly) {
  CHORD_NEEDS_PROGRAMS("pkg-config");
  CHORD_NEEDS_INSTALLED_TREE();
  const Environment where{{"PKG_CONFIG_PATH", tree.library("pkgconfig")}};
  const auto names = [&](const char* flags) {
    return shell(std::string("pkg-config --libs ") + flags + " chord_jit", where).out;
  };
  EXPECT_EQ(names("").find("-lsodium"), std::string::npos);
  EXPECT_NE(names("--static").find("-lsodium"), std::string::npos);
}

TEST(Consumer, AddSubdirectoryInstallsNothingInTheParent) {
  CHORD_NEEDS_INSTALLED_TREE();
  const ScratchFolder scratch;
  write_file(scratch.path("CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.22)\nproject(parent LANGUAGES CXX)\n"
             "add_subdirectory(\"" CHORD_SOURCE_DIR
             "\" chord)\n"
             "add_executable(app app.cpp)\n"
             "target_link_libraries(app PRIVATE chord::chord_jit)\n"
             "add_executable(app2 app.cpp)\n"
             "target_link_libraries(app2 PRIVATE chord::chord_jit_static)\n");
  write_file(scratch.path("app.cpp"), "int main() {}\n");
  const Outcome configured = build_project(tree, scratch.path(), scratch.path("build"), "", false);
  ASSERT_EQ(configured.exit_code, 0) << configured.err;
  const Outcome installed =
      shell("cmake --install " + scratch.path("build") + " --prefix " + scratch.path("prefix"));
  EXPECT_EQ(installed.exit_code, 0) << installed.err;
  EXPECT_FALSE(fs::exists(scratch.path("prefix")));
}

}  // namespace
}  // namespace chord::packaging_test
