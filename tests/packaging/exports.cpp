// Reads symbols with nm, and declarations out of the headers as far as this question needs it.
#include "tests/packaging/exports.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/packaging/installed.h"
#include "tests/structure/source_tree.h"

namespace chord::packaging_test {
namespace {

namespace fs = std::filesystem;

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string name = status == 0 ? text : symbol;
  std::free(text);
  return name;
}

// The code of a header without comments, literals and preprocessor lines.
std::string declarations_of(const std::string& path) {
  std::istringstream lines(structure::code_of(read_file(path)));
  std::string code;
  bool directive = false;
  for (std::string line; std::getline(lines, line);) {
    directive = directive || line.substr(0, 1) == "#";
    if (!directive) code += line + "\n";
    directive = directive && !line.empty() && line.back() == '\\';
  }
  return code;
}

// The text between the brace at `open` and the one that closes it.
std::string block_at(const std::string& code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    depth += code[i] == '{' ? 1 : code[i] == '}' ? -1 : 0;
    if (depth == 0) return code.substr(open + 1, i - open - 1);
  }
  return "";
}

const char* const kFunction = R"((~?[A-Za-z_]\w*|operator\s*[=!<>]+)\s*\()";

void add_functions(const std::string& code, const std::string& before,
                   std::set<std::string>& names) {
  const std::regex function(kFunction);
  for (std::sregex_iterator at(code.begin(), code.end(), function), end; at != end; ++at)
    names.insert(before + (*at)[1].str());
}

// The class or struct of the public headers around a position: the last one opened and not closed.
std::string class_around(const std::string& code, std::size_t position) {
  const std::regex opening(R"(\b(?:struct|class)\s+(?:CHORD_API\s+)?(\w+)\s*(?::[^;{]*)?\{)");
  std::string found;
  for (std::sregex_iterator at(code.begin(), code.end(), opening), end; at != end; ++at) {
    const std::size_t open = static_cast<std::size_t>(at->position() + at->length()) - 1;
    if (open < position && position < open + block_at(code, open).size())
      found = (*at)[1].str() + "::";
  }
  return found;
}

void add_declared(const std::string& code, std::set<std::string>& names) {
  const std::regex whole_class(R"(\bclass\s+CHORD_API\s+(\w+)[^;{]*\{)");
  for (std::sregex_iterator at(code.begin(), code.end(), whole_class), end; at != end; ++at) {
    const std::size_t open = static_cast<std::size_t>(at->position() + at->length()) - 1;
    add_functions(block_at(code, open), "chord::" + (*at)[1].str() + "::", names);
  }
  const std::regex marked(std::string(R"(\bCHORD_(C_)?API\s+(?!\w+[^;()]*\{)[^;(){}]*?)") +
                          kFunction);
  for (std::sregex_iterator at(code.begin(), code.end(), marked), end; at != end; ++at) {
    const bool is_c = (*at)[1].matched;
    const auto position = static_cast<std::size_t>(at->position());
    names.insert((is_c ? "" : "chord::" + class_around(code, position)) + (*at)[2].str());
  }
}

}  // namespace

std::string golden_path() { return CHORD_SOURCE_DIR "/tests/golden/exported_symbols.txt"; }

std::vector<std::string> golden_symbols() {
  std::istringstream lines(read_file(golden_path()));
  std::vector<std::string> symbols;
  for (std::string line; std::getline(lines, line);) symbols.push_back(line);
  return symbols;
}

Result<std::vector<std::string>> exported_symbols(const std::string& library) {
  const Outcome outcome = shell("nm -D --defined-only --format=posix '" + library + "'");
  if (outcome.exit_code != 0)
    return Error{ErrorCode::unavailable, "the symbols of " + library, outcome.err,
                 "build chord_jit_shared, install binutils"};
  std::istringstream lines(outcome.out);
  std::vector<std::string> symbols;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string symbol, type;
    fields >> symbol >> type;
    if (type != "A") symbols.push_back(symbol.substr(0, symbol.find('@')));  // A: the version
  }
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

std::string qualified_name(const std::string& symbol) {
  std::string name = demangled(symbol);
  for (const char* before : {"vtable for ", "typeinfo for ", "typeinfo name for "})
    if (name.rfind(before, 0) == 0) return name.substr(std::string(before).size());
  name = name.substr(0, name.find('('));
  return name.substr(0, name.find("[abi:"));
}

std::set<std::string> declared_names() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(CHORD_SOURCE_DIR "/include/chord"))
    if (entry.is_regular_file()) add_declared(declarations_of(entry.path()), names);
  return names;
}

Status update_golden() {
  CHORD_TRY(const std::vector<std::string> symbols,
            exported_symbols(CHORD_BINARY_DIR "/libchord_jit.so"));
  std::ofstream file(golden_path(), std::ios::binary);
  for (const std::string& symbol : symbols) file << symbol << "\n";
  file.close();
  if (!file)
    return Error{ErrorCode::io_error, "write " + golden_path(), "the file did not take it",
                 "is the source tree writable?"};
  fmt::print("{}: {} symbols\n", golden_path(), symbols.size());
  return {};
}

}  // namespace chord::packaging_test
