// Listings: what is read, and that a damaged one is an error and never a shorter one.
#include "src/sass/listing.h"

#include <gtest/gtest.h>

#include "tests/sass/text.h"

namespace chord::sass {
namespace {

using sass_test::text_of;

const std::vector<std::string> kSmall{
    "LDC R1, c[0x0][0x28]", "@P0 EXIT", ".L_x_0:", "BRA.DIV UR4, `(.L_x_1)", "@!P1 BRA `(.L_x_0)",
    "BRA.U UP0, `(.L_x_0)", "EXIT",     ".L_x_1:", "BRA `(.L_x_0)",          "NOP"};

std::string found_in(const Result<Listing>& listing) {
  return listing.ok() ? "" : listing.error().found;
}

bool is_refused_for(const std::vector<std::string>& lines, const std::string& reason) {
  const Result<Listing> listing = parse_listing(text_of(lines), "chord_kernel");
  return !listing.ok() && listing.error().found.find(reason) != std::string::npos;
}

TEST(Listing, HasOpcodesTargetsAndFallThrough) {
  const Result<Listing> listing = parse_listing(text_of(kSmall), "chord_kernel");
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  const struct {
    const char* opcode;
    std::optional<std::size_t> target;
    bool falls_through;
  } expected[] = {{"LDC", {}, true}, {"EXIT", {}, true},  {"BRA", 6, true},  {"BRA", 2, true},
                  {"BRA", 2, true},  {"EXIT", {}, false}, {"BRA", 2, false}, {"NOP", {}, true}};
  ASSERT_EQ(listing->size(), std::size(expected));
  for (std::size_t i = 0; i < listing->size(); ++i) {
    EXPECT_EQ((*listing)[i].opcode, expected[i].opcode) << i;
    EXPECT_EQ((*listing)[i].target, expected[i].target) << i;
    EXPECT_EQ((*listing)[i].falls_through, expected[i].falls_through) << i;
  }
}

TEST(Listing, IsOfTheNamedFunctionOnly) {
  const std::string both = text_of({"NOP", "NOP"}, "helper") + text_of(kSmall);
  EXPECT_EQ(parse_listing(both, "helper")->size(), 2u);
  EXPECT_EQ(parse_listing(both, "chord_kernel")->size(), 8u);
  EXPECT_EQ(found_in(parse_listing(both, "chord")), "it has no such function");
}

TEST(Listing, LabelsThatNobodyNamesChangeNothing) {
  std::vector<std::string> lines;
  for (const std::string& line : kSmall) {
    lines.push_back(fmt::format(".L_more_{}:", lines.size()));
    lines.push_back(line);
  }
  EXPECT_EQ(parse_listing(text_of(lines), "chord_kernel")->size(), 8u);
}

TEST(Listing, RefusesWhatIsNoListing) {
  for (const char* text : {"", "\n\n", "chord_kernel", "nvdisasm fatal : File x is invalid\n"})
    EXPECT_EQ(found_in(parse_listing(text, "chord_kernel")), "it has no such function") << text;
  EXPECT_NE(found_in(parse_listing("chord_kernel:\n", "chord_kernel")), "");
  EXPECT_EQ(found_in(parse_listing(text_of({}), "chord_kernel")),
            "the function has no instruction");
}

TEST(Listing, RefusesEveryCut) {
  const std::string text = text_of(kSmall);
  const std::size_t whole = text.find(".L_end:") + 7;
  for (std::size_t size = 0; size < whole; ++size)
    EXPECT_FALSE(parse_listing(text.substr(0, size), "chord_kernel").ok()) << size;
  EXPECT_TRUE(parse_listing(text.substr(0, whole), "chord_kernel").ok());
}

TEST(Listing, RefusesAMissingLine) {
  const std::string text = text_of(kSmall);
  for (int address = 0; address < 0x70; address += 16) {
    const std::size_t at = text.find(fmt::format("        /*{:04x}*/", address));
    ASSERT_NE(at, std::string::npos);
    std::string cut = text;
    cut.erase(at, text.find('\n', at) + 1 - at);
    EXPECT_NE(found_in(parse_listing(cut, "chord_kernel")).find("is missing"), std::string::npos)
        << address;
  }
}

TEST(Listing, RefusesBranchesItCanNotFollow) {
  EXPECT_TRUE(is_refused_for({"BRA `(.L_x_9)", "NOP"}, "a branch to .L_x_9"));
  EXPECT_TRUE(is_refused_for({"BRA `(.L_end)", "NOP"}, "a branch to .L_end"));
  EXPECT_TRUE(is_refused_for({"BRA 0x40", "NOP"}, "a branch without a label"));
  EXPECT_TRUE(is_refused_for({"BRX R4 -0x10", "NOP"}, "an indirect branch"));
}

TEST(Listing, RefusesLinesOfAnotherForm) {
  EXPECT_TRUE(is_refused_for({"@P0"}, "an instruction without a name"));
  std::string text = text_of({"NOP", "EXIT"});
  text.replace(text.find("/*0010*/"), 8, "/*zz10*/");
  EXPECT_NE(found_in(parse_listing(text, "chord_kernel")).find("without an address"),
            std::string::npos);
  text = text_of({"NOP", "EXIT"});
  text.insert(text.find("        /*0010*/"), "what is this\n");
  EXPECT_NE(found_in(parse_listing(text, "chord_kernel")).find("no instruction: what is this"),
            std::string::npos);
}

}  // namespace
}  // namespace chord::sass
