// The source tree as data, for the tests of its own rules: the files, their includes, and their
// code with comments and literals blanked out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chord::structure {

struct SourceFile {
  std::string path;  // from the root of the tree: "cache/entry.h"
  std::string text;

  bool is_cpp() const;  // .h .cpp .cuh
};

struct Include {
  std::string name;
  bool quoted = false;
  int line = 0;
};

// Every file of ours: sources, scripts, build files, documents. No data, no build folder.
const std::vector<SourceFile>& source_files();

std::vector<Include> includes_of(const SourceFile& file);

// The text with comments, string and character literals replaced by spaces; newlines stay.
std::string code_of(std::string_view text);

// True when `word` stands in `code` as a whole identifier.
bool has_word(std::string_view code, std::string_view word);

bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

}  // namespace chord::structure
