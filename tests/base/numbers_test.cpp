// Numbers of variables and flags: exactly what is a number, and nothing else.
#include "src/base/numbers.h"

#include <gtest/gtest.h>

namespace chord::base {
namespace {

TEST(Numbers, WholeNumbersAreDecimalDigits) {
  EXPECT_EQ(parse_whole_number("0"), 0u);
  EXPECT_EQ(parse_whole_number("18446744073709551615"), ~std::uint64_t{0});
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "1.5", "18446744073709551616"})
    EXPECT_EQ(parse_whole_number(text), std::nullopt) << text;
}

TEST(Numbers, SizesTakeAUnitOf1024) {
  EXPECT_EQ(parse_byte_size("100"), 100u);
  EXPECT_EQ(parse_byte_size("1K"), 1024u);
  EXPECT_EQ(parse_byte_size("512M"), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_byte_size("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_byte_size("1T"), std::uint64_t{1} << 40);
  for (const char* text : {"", "G", "2g", "2GB", "-1K", "1.5G", "99999999999T"})
    EXPECT_EQ(parse_byte_size(text), std::nullopt) << text;
}

}  // namespace
}  // namespace chord::base
