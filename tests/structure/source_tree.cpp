// Reads the source tree once.
#include "tests/structure/source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace chord::structure {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolders[] = {"cache", "heuristics", "include", "kernels",
                                         "src",   "tests",      "tools",   ".ci"};
constexpr std::string_view kEndings[] = {".h",  ".c",  ".cpp", ".cuh", ".cmake",
                                         ".sh", ".md", ".txt", "run"};

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_ours(const std::string& path) {
  if (starts_with(path, "tests/golden/") || starts_with(path, "tools/results/")) return false;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return ends_with(path, ending); });
}

std::vector<SourceFile> read_tree() {
  const fs::path root = CHORD_SOURCE_DIR;
  std::vector<SourceFile> files{{"CMakeLists.txt", read(root / "CMakeLists.txt")},
                                {"README.md", read(root / "README.md")}};
  for (const std::string_view folder : kFolders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (entry.is_regular_file() && is_ours(path)) files.push_back({path, read(entry.path())});
    }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end of the literal or comment that starts at `at`; `at` itself when none does.
std::size_t skip_blank(std::string_view text, std::size_t at) {
  const auto end_after = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = text.find(mark, from);
    return found == text.npos ? text.size() : found + mark.size();
  };
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) == "/*") return end_after("*/", at + 2);
  if (text.substr(at, 2) == "R\"" && (at == 0 || !is_identifier(text[at - 1]))) {
    const std::size_t open = text.find('(', at);
    if (open == text.npos) return text.size();
    return end_after(")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open);
  }
  const bool digit_separator = text[at] == '\'' && at > 0 && is_identifier(text[at - 1]);
  if ((text[at] != '"' && text[at] != '\'') || digit_separator) return at;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

}  // namespace

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool SourceFile::is_cpp() const {
  return ends_with(path, ".h") || ends_with(path, ".c") || ends_with(path, ".cpp") ||
         ends_with(path, ".cuh");
}

const std::vector<SourceFile>& source_files() {
  static const std::vector<SourceFile> files = read_tree();
  return files;
}

std::vector<Include> includes_of(const SourceFile& file) {
  constexpr std::string_view kDirective = "#include ";
  std::vector<Include> includes;
  int line = 0;
  for (std::size_t at = 0; at < file.text.size();) {
    ++line;
    const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
    const std::string_view text = std::string_view(file.text).substr(at, end - at);
    at = end + 1;
    if (!starts_with(text, kDirective) || text.size() <= kDirective.size()) continue;
    const bool quoted = text[kDirective.size()] == '"';
    const std::size_t close = text.find(quoted ? '"' : '>', kDirective.size() + 1);
    if (close == text.npos) continue;
    includes.push_back(
        {std::string(text.substr(kDirective.size() + 1, close - kDirective.size() - 1)), quoted,
         line});
  }
  return includes;
}

std::string code_of(std::string_view text) {
  std::string code(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = skip_blank(text, at);
    for (std::size_t i = at; i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
    at = std::max(end, at + 1);
  }
  return code;
}

bool has_word(std::string_view code, std::string_view word) {
  for (std::size_t at = code.find(word); at != code.npos; at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_identifier(code[at - 1]);
    if (starts && (end == code.size() || !is_identifier(code[end]))) return true;
  }
  return false;
}

}  // namespace chord::structure
