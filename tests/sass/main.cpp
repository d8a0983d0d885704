// The main of chord-test-sass: the tests, or with --update-golden the recording of their counts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sass/golden.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--update-golden") == 0) {
    const chord::Status done = chord::sass_test::update_golden();
    if (!done.ok()) fmt::print(stderr, "error: {}\n", done.error().message());
    return done.ok() ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
