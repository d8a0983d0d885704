// The tests of what is installed and packaged, or with --update-golden the recording of what the
// shared library exports.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/packaging/exports.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--update-golden") == 0) {
    const chord::Status done = chord::packaging_test::update_golden();
    if (!done.ok()) fmt::print(stderr, "error: {}\n", done.error().message());
    return done.ok() ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
