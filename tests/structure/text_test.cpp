// The rules that hold for every file of text, and for every line of library code.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/structure/source_tree.h"

namespace chord::structure {
namespace {

bool is_library(const SourceFile& file) {
  if (!file.is_cpp()) return false;
  for (const char* folder : {"include/", "heuristics/", "kernels/", "cache/", "src/"})
    if (starts_with(file.path, folder)) return true;
  return false;
}

// Names every library file outside `allowed` whose code has the word.
std::string users_of(std::string_view word, std::string_view allowed) {
  std::string users;
  for (const SourceFile& file : source_files()) {
    if (!is_library(file) && !(file.is_cpp() && starts_with(file.path, "tools/"))) continue;
    if (!allowed.empty() && starts_with(file.path, allowed)) continue;
    if (has_word(code_of(file.text), word)) users += file.path + " ";
  }
  return users;
}

TEST(Lexer, BlanksCommentsAndLiterals) {
  EXPECT_EQ(code_of("a // b\nc"), "a     \nc");
  EXPECT_EQ(code_of("a /* b\n */ c"), "a     \n    c");
  EXPECT_EQ(code_of(R"(f("g\"h", 'i'))"), "f(      ,    )");
  EXPECT_EQ(code_of("1'000 R\"(x\")\" y"), "1'000         y");
}

TEST(Lexer, FindsWholeWordsOnly) {
  EXPECT_TRUE(has_word("std::getenv(name)", "getenv"));
  EXPECT_FALSE(has_word("my_getenv(getenv_name)", "getenv"));
}

// What a file of this kind must open with; empty when anything will do.
std::string opening_of(const SourceFile& file) {
  if (file.path == "tools/examples/link_example.cpp") return "#include <chord/";  // as users write
  if (file.is_cpp()) return "// ";
  if (ends_with(file.path, ".sh") || file.path == ".ci/run") return "#!/usr/bin/env bash\n# ";
  return ends_with(file.path, ".md") ? "# " : "";
}

TEST(Text, FilesOpenWithWhatLivesThere) {
  for (const SourceFile& file : source_files())
    EXPECT_TRUE(starts_with(file.text, opening_of(file))) << file.path;
}

TEST(Text, IsAsciiWithoutTabsOrTrailingSpace) {
  for (const SourceFile& file : source_files()) {
    std::istringstream lines(file.text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      for (const char c : line)
        EXPECT_TRUE(c >= ' ' && c <= '~') << file.path << ":" << number << " '" << c << "'";
      EXPECT_FALSE(ends_with(line, " ")) << file.path << ":" << number;
    }
    EXPECT_TRUE(ends_with(file.text, "\n")) << file.path;
  }
}

TEST(Text, HasAtMostAHundredColumns) {
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp() && !ends_with(file.path, ".sh")) continue;
    std::istringstream lines(file.text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      EXPECT_LE(line.size(), 100u) << file.path << ":" << number;
    }
  }
}

TEST(Text, HeadersGuardThemselves) {
  for (const SourceFile& file : source_files()) {
    if (!ends_with(file.path, ".h") && !ends_with(file.path, ".cuh")) continue;
    EXPECT_NE(file.text.find("\n#pragma once\n"), std::string::npos) << file.path;
  }
}

TEST(Text, NamesNoMachineAndNoUnfinishedWork) {
  // Written in two pieces, so that this file does not find itself.
  const std::string words[] = {std::string("/wo") + "rk/",     std::string("../sha") + "red",
                               std::string("/ro") + "ot/",     std::string("/ho") + "me/",
                               std::string("TO") + "DO",       std::string("FIX") + "ME",
                               std::string("arti") + "factory"};
  for (const SourceFile& file : source_files())
    for (const std::string& word : words)
      EXPECT_EQ(file.text.find(word), std::string::npos) << file.path << " has " << word;
}

TEST(Library, ReadsTheEnvironmentAtOneDoor) {
  EXPECT_EQ(users_of("getenv", "src/base/environment."), "");
  EXPECT_EQ(users_of("secure_getenv", ""), "");
  EXPECT_EQ(users_of("environ", ""), "");
}

TEST(Library, LogsThroughOneFile) { EXPECT_EQ(users_of("spdlog", "src/base/log."), ""); }

TEST(Library, OpensLibrariesThroughOneFile) {
  EXPECT_EQ(users_of("dlopen", "src/base/dynamic_library."), "");
  EXPECT_EQ(users_of("dlsym", "src/base/dynamic_library."), "");
}

TEST(Library, NeverThrowsPrintsOrAborts) {
  const char* const words[] = {"throw", "abort", "exit",   "_exit",   "terminate", "cout",
                               "cerr",  "puts",  "printf", "fprintf", "fputs"};
  for (const SourceFile& file : source_files()) {
    if (!is_library(file)) continue;
    const std::string code = code_of(file.text);
    for (const char* word : words)
      EXPECT_FALSE(has_word(code, word)) << file.path << " uses " << word;
  }
}

}  // namespace
}  // namespace chord::structure
