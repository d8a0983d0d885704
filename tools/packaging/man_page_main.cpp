// chord-man-page TOOL OUTPUT [OTHER...]: asks a built tool, and each of its commands, for --help
// and writes the man page. Runs at build time only; OTHER are the tools to name at the end.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "chord/version.h"
#include "tools/packaging/man_page.h"

namespace chord::packaging {
namespace {

std::optional<std::string> output_of(const std::string& command) {
  std::FILE* stream = popen(command.c_str(), "r");
  if (stream == nullptr) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, stream)) > 0;)
    text.append(buffer, got);
  if (pclose(stream) != 0 || text.empty()) return std::nullopt;
  return text;
}

// The help of the tool, or of a command of it.
std::optional<Help> help_of(const std::string& tool, const std::string& command) {
  const auto text = output_of(fmt::format("'{}' {} --help", tool, command));
  if (!text) return std::nullopt;
  Help help = parse_help(*text);
  if (help.summary.empty() || help.usage.empty()) return std::nullopt;
  return help;
}

std::optional<ManPage> page_of(const std::string& tool) {
  const auto help = help_of(tool, "");
  if (!help) return std::nullopt;
  ManPage page{std::filesystem::path(tool).filename(), kVersionText, *help, {}, {}};
  const HelpSection* commands = page.help.find("Subcommands");
  if (commands == nullptr) return page;
  for (const HelpItem& item : commands->items) {
    const auto of_command = help_of(tool, item.term);
    if (!of_command) return std::nullopt;
    page.commands.emplace_back(item.term, *of_command);
  }
  return page;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: chord-man-page TOOL OUTPUT [OTHER...]\n");
    return 2;
  }
  auto page = page_of(arguments[0]);
  if (!page) {
    fmt::print(stderr, "error: {} --help gave no help text\n", arguments[0]);
    return 1;
  }
  page->see_also.assign(arguments.begin() + 2, arguments.end());
  std::ofstream file(arguments[1], std::ios::binary);
  file << roff_of(*page);
  file.close();
  if (!file) fmt::print(stderr, "error: could not write {}\n", arguments[1]);
  return file ? 0 : 1;
}

}  // namespace
}  // namespace chord::packaging

int main(int argc, char** argv) {
  return chord::packaging::run(std::vector<std::string>(argv + 1, argv + argc));
}
