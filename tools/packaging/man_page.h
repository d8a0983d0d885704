// A man page from what a tool prints with --help, so that the two can not differ.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chord::packaging {

// "  --rows COUNT                routed rows": what is named, and what is said of it.
struct HelpItem {
  std::string term;
  std::string text;
};

struct HelpSection {
  std::string title;               // "Options"
  std::vector<HelpItem> items;     // of a list
  std::vector<std::string> lines;  // of examples, as they stand
};

struct Help {
  std::string summary;  // "Says which schedule is chosen for given rows, and why."
  std::string usage;    // "chord-explain [OPTIONS]"
  std::vector<HelpSection> sections;

  const HelpSection* find(std::string_view title) const;
};

Help parse_help(std::string_view text);

struct ManPage {
  std::string tool;
  std::string version;
  Help help;
  std::vector<std::pair<std::string, Help>> commands;  // by name: "ls"
  std::vector<std::string> see_also;                   // the other tools
};

std::string roff_of(const ManPage& page);

// Text that roff prints as it stands.
std::string roff_text(std::string_view text);

}  // namespace chord::packaging
