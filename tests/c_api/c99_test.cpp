// The library as a C99 program sees it.
#include "tests/c_api/c99.h"

#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

std::string or_nothing(const char* wrong) { return wrong == nullptr ? "" : wrong; }

TEST(C99, WalksThroughTheLibrary) {
  const chord::testing::TemporaryFolder folder;
  EXPECT_EQ(or_nothing(c99_walk((folder / "cache").c_str())), "");
}

TEST(C99, ValuesThatAreNoEnumeratorAreRefused) {
  const chord::testing::TemporaryFolder folder;
  EXPECT_EQ(or_nothing(c99_wrong_enums((folder / "cache").c_str())), "");
}

}  // namespace
}  // namespace chord::c_api_test
