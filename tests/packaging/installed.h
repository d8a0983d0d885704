// The installed tree that the tests of this binary look at: installed once by cmake --install, then
// moved to another folder, so that nothing in it may rely on where it was installed.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "tests/tools/process.h"

namespace chord::packaging_test {

using tools_test::Environment;
using tools_test::Outcome;
using tools_test::read_file;
using tools_test::ScratchFolder;
using tools_test::write_file;

struct InstalledTree {
  std::string prefix;        // where it lies
  std::string installed_to;  // where it was installed; not there any more
  std::string fault;         // why there is none

  std::string path(const std::string& name) const { return prefix + "/" + name; }
  std::string library(const std::string& name) const;  // in its library folder
};

const InstalledTree& installed_tree();

// A line of the shell, with the locale C.
Outcome shell(const std::string& command, Environment environment = {});

// "0.1": what the names of library, symbol version and package end with. Before 1.0 a minor version
// may change the interface.
std::string interface_version();

// The first of these programs that the shell does not find; empty when all are here.
std::string missing_program(std::initializer_list<const char*> programs);

// "chord-explain" and so on: one for each tools/chord_*.cpp.
std::vector<std::string> tool_names();

// Whether what this machine lacks is a failure: kCompleteVariable is set, as .ci/run does.
inline constexpr const char* kCompleteVariable = "LIBCHORD_TESTS_COMPLETE";
bool nothing_may_be_skipped();

#define CHORD_NEEDS(condition, lack)                                                          \
  if (!(condition)) {                                                                         \
    ASSERT_FALSE(nothing_may_be_skipped()) << lack << ", " << kCompleteVariable << " is set"; \
    GTEST_SKIP() << lack;                                                                     \
  }                                                                                           \
  static_assert(true)

#define CHORD_NEEDS_PROGRAMS(...)                     \
  CHORD_NEEDS(missing_program({__VA_ARGS__}).empty(), \
              "no " << missing_program({__VA_ARGS__}) << " on this machine")

// A sanitizer's run time has to come first in a program: others can not use such a library.
#define CHORD_NEEDS_A_PLAIN_BUILD() \
  if (*CHORD_SANITIZE != '\0') GTEST_SKIP() << "built with a sanitizer: " CHORD_SANITIZE

#define CHORD_NEEDS_INSTALLED_TREE()                                                  \
  CHORD_NEEDS(access(CHORD_BINARY_DIR, W_OK) == 0,                                    \
              "cmake --install writes into " CHORD_BINARY_DIR ", this user can not"); \
  const InstalledTree& tree = installed_tree();                                       \
  ASSERT_EQ(tree.fault, "")

}  // namespace chord::packaging_test
