// Reads the help of the flag parser line by line, and writes the man macros of roff.
#include "tools/packaging/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace chord::packaging {
namespace {

constexpr std::size_t kTextColumn = 30;  // where the parser puts what it says of a flag

bool is_indented(std::string_view line, std::size_t columns) {
  return line.size() > columns && line.substr(0, columns) == std::string(columns, ' ');
}

std::string stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// The text starts after two spaces, or one space before its column. A term that is too long for
// that has the text on the next line.
HelpItem item_of(std::string_view line, bool text_follows) {
  const std::size_t gap = line.find("  ", 2);
  if (gap != line.npos) return {stripped(line.substr(0, gap)), stripped(line.substr(gap))};
  if (!text_follows && line.size() > kTextColumn && line[kTextColumn - 1] == ' ')
    return {stripped(line.substr(0, kTextColumn)), stripped(line.substr(kTextColumn))};
  return {stripped(line), ""};
}

void add_line(HelpSection& section, std::string_view line, bool text_follows) {
  if (section.title == "Examples") {
    section.lines.push_back(stripped(line));
  } else if (is_indented(line, 4) && !section.items.empty()) {
    std::string& text = section.items.back().text;
    text += (text.empty() ? "" : " ") + stripped(line);
  } else {
    section.items.push_back(item_of(line, text_follows));
  }
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "Says which schedule." as the second half of a NAME line.
std::string as_clause(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

std::string section_roff(const HelpSection& section) {
  std::string roff;
  if (!section.lines.empty()) {
    roff += ".nf\n";
    for (const std::string& line : section.lines) roff += roff_text(line) + "\n";
    roff += ".fi\n";
  }
  for (const HelpItem& item : section.items)
    roff += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff_text(item.term),
                        item.text.empty() ? "\\&" : roff_text(item.text));
  return roff;
}

// The title that man pages have for a section of the help.
std::string man_title(const std::string& title) {
  if (title == "Exit codes") return "EXIT STATUS";
  if (title == "Subcommands") return "COMMANDS";
  return upper(title);
}

// What every command says once more is said once, for all of them.
bool is_common(const HelpSection& section) {
  return section.title == "Exit codes" || section.title == "Of every command";
}

std::string command_roff(const std::string& name, const Help& help) {
  std::string roff = fmt::format(".SS {}\n{}\n.PP\n\\fB{}\\fR\n", roff_text(name),
                                 roff_text(help.summary), roff_text(help.usage));
  for (const HelpSection& section : help.sections)
    if (!is_common(section))
      roff += fmt::format(".PP\n{}:\n", roff_text(section.title)) + section_roff(section);
  return roff;
}

}  // namespace

const HelpSection* Help::find(std::string_view title) const {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const HelpSection& s) { return s.title == title; });
  return found == sections.end() ? nullptr : &*found;
}

Help parse_help(std::string_view text) {
  constexpr std::string_view kUsage = "Usage: ";
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  Help help;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty()) continue;
    if (line.substr(0, kUsage.size()) == kUsage) {
      help.usage = line.substr(kUsage.size());
    } else if (help.usage.empty()) {
      help.summary += (help.summary.empty() ? "" : " ") + stripped(line);
    } else if (!is_indented(line, 2)) {
      help.sections.push_back({line.substr(0, line.rfind(':')), {}, {}});
    } else if (!help.sections.empty()) {
      const bool text_follows = i + 1 < lines.size() && is_indented(lines[i + 1], kTextColumn);
      add_line(help.sections.back(), line, text_follows);
    }
  }
  return help;
}

std::string roff_text(std::string_view text) {
  std::string roff;
  // A line that opens with one of these would be a request.
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) roff = "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      default:
        roff += c;
    }
  }
  return roff;
}

std::string roff_of(const ManPage& page) {
  std::string roff = fmt::format(
      ".TH {} 1 \"\" \"chord_jit {}\" \"chord_jit\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fB{}\\fR\n.SH DESCRIPTION\n{}\n",
      roff_text(upper(page.tool)), page.version, roff_text(page.tool),
      roff_text(as_clause(page.help.summary)), roff_text(page.help.usage),
      roff_text(page.help.summary));
  for (const HelpSection& section : page.help.sections) {
    roff += fmt::format(".SH {}\n", roff_text(man_title(section.title))) + section_roff(section);
    if (section.title == "Subcommands")
      for (const auto& [name, help] : page.commands) roff += command_roff(name, help);
  }
  if (page.see_also.empty()) return roff;
  roff += ".SH SEE ALSO\n";
  for (const std::string& tool : page.see_also)
    roff += fmt::format("{}\\fB{}\\fR(1)", &tool == &page.see_also.front() ? "" : ",\n",
                        roff_text(tool));
  return roff + "\n";
}

}  // namespace chord::packaging
