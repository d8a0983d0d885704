// From the help of a tool to its man page.
#include "tools/packaging/man_page.h"

#include <gtest/gtest.h>

namespace chord::packaging {
namespace {

constexpr const char* kHelp =
    "Keeps things.\n"
    "Usage: chord-keep [OPTIONS] [SUBCOMMAND]\n"
    "\n"
    "Options:\n"
    "  -h,--help                   Print this help message and exit\n"
    "  --a-flag-of-some-len NUMBER of 29 columns\n"
    "  --longer-than-its-column-is FOLDER\n"
    "                              where it goes\n"
    "                              and how\n"
    "\n"
    "Subcommands:\n"
    "  ls                          list them\n"
    "\n"
    "Examples:\n"
    "  chord-keep ls 'a  b'\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n";

TEST(ParseHelp, TakesSummaryAndUsage) {
  const Help help = parse_help(kHelp);
  EXPECT_EQ(help.summary, "Keeps things.");
  EXPECT_EQ(help.usage, "chord-keep [OPTIONS] [SUBCOMMAND]");
}

TEST(ParseHelp, TakesFlagsHoweverLongTheyAre) {
  const Help help = parse_help(kHelp);
  const HelpSection& options = *help.find("Options");
  ASSERT_EQ(options.items.size(), 3u);
  EXPECT_EQ(options.items[0].term, "-h,--help");
  EXPECT_EQ(options.items[1].term, "--a-flag-of-some-len NUMBER");
  EXPECT_EQ(options.items[1].text, "of 29 columns");
  EXPECT_EQ(options.items[2].term, "--longer-than-its-column-is FOLDER");
  EXPECT_EQ(options.items[2].text, "where it goes and how");
}

TEST(ParseHelp, LeavesExamplesAsTheyStand) {
  const Help help = parse_help(kHelp);
  EXPECT_EQ(help.find("Examples")->lines, std::vector<std::string>{"chord-keep ls 'a  b'"});
}

TEST(RoffText, HidesWhatRoffWouldRead) {
  EXPECT_EQ(roff_text(".TH"), "\\&.TH");
  EXPECT_EQ(roff_text("'x"), "\\&\\(aqx");
  EXPECT_EQ(roff_text("a\\n --b"), "a\\en \\-\\-b");
}

TEST(ManPage, HasTheSectionsOfAManPage) {
  const std::string roff = roff_of({"chord-keep", "1.2.3", parse_help(kHelp), {}, {"chord-more"}});
  for (const char* line :
       {".TH CHORD\\-KEEP 1 \"\" \"chord_jit 1.2.3\" \"chord_jit\"\n",
        ".SH NAME\nchord\\-keep \\- keeps things\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n.TP\n",
        ".SH COMMANDS\n", ".SH EXAMPLES\n.nf\n", ".SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone\n",
        ".SH SEE ALSO\n\\fBchord\\-more\\fR(1)\n"})
    EXPECT_NE(roff.find(line), std::string::npos) << line << "\n" << roff;
}

TEST(ManPage, SaysEveryCommandWithItsFlags) {
  const Help of_command = parse_help(
      "list them\nUsage: chord-keep ls [OPTIONS]\n\nOptions:\n  --all                       all\n"
      "\nExit codes:\n  0  done\n");
  const std::string roff =
      roff_of({"chord-keep", "1.2.3", parse_help(kHelp), {{"ls", of_command}}, {}});
  EXPECT_NE(roff.find(".SS ls\nlist them\n.PP\n\\fBchord\\-keep ls [OPTIONS]\\fR\n"),
            std::string::npos)
      << roff;
  EXPECT_NE(roff.find(".TP\n\\fB\\-\\-all\\fR\nall\n"), std::string::npos) << roff;
}

}  // namespace
}  // namespace chord::packaging
