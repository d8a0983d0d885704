// The Debian packages that cpack makes: three, with what belongs into each.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "chord/version.h"
#include "tests/packaging/installed.h"

namespace chord::packaging_test {
namespace {

namespace fs = std::filesystem;

// Made once; a folder that ends with the process.
struct Packages {
  ScratchFolder folder;
  std::string fault;

  Packages() {
    const Outcome made = shell(
        "cd " + folder.path() +
        " && cpack -G DEB --config '" CHORD_BINARY_DIR "/CPackConfig.cmake' -B " + folder.path());
    if (made.exit_code != 0) fault = made.out + made.err;
  }

  std::string file(const std::string& package) const {
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.path().filename().string().rfind(package + "_" + kVersionText + "_", 0) == 0)
        return entry.path().string();
    return folder.path(package + ".deb is not there");
  }
  std::string field(const std::string& package, const std::string& name) const {
    return shell("dpkg-deb -f '" + file(package) + "' " + name).out;
  }
  // Paths below the root, "usr/bin/chord-cache", one a line.
  std::string contents(const std::string& package) const {
    return shell("dpkg-deb --fsys-tarfile '" + file(package) + "' | tar -t | sed 's,^[.]*/,,'").out;
  }
};

const Packages& packages() {
  static const Packages made;
  return made;
}

std::string library_package() { return "libchord-jit" + interface_version(); }

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

#define CHORD_NEEDS_PACKAGES()                                                       \
  CHORD_NEEDS_A_PLAIN_BUILD();                                                       \
  CHORD_NEEDS_PROGRAMS("cpack", "dpkg-deb", "dpkg-shlibdeps", "file", "tar", "sed"); \
  CHORD_NEEDS(access(CHORD_BINARY_DIR, W_OK) == 0,                                   \
              "cpack writes into " CHORD_BINARY_DIR ", this user can not");          \
  ASSERT_EQ(packages().fault, "")

TEST(Debian, LibraryPackageHoldsTheSharedLibraryAlone) {
  CHORD_NEEDS_PACKAGES();
  std::istringstream lines(packages().contents(library_package()));
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.back() == '/') continue;
    ++files;
    EXPECT_TRUE(line == "usr/" CHORD_LIBDIR "/libchord_jit.so." + interface_version() ||
                line == std::string("usr/" CHORD_LIBDIR "/libchord_jit.so.") + kVersionText ||
                line == "usr/share/doc/" + library_package() + "/copyright")
        << line;
  }
  EXPECT_EQ(files, 3);
}

TEST(Debian, DevelopmentPackageHoldsHeadersStaticLibraryAndPackageFiles) {
  CHORD_NEEDS_PACKAGES();
  const std::string contents = packages().contents("libchord-jit-dev");
  for (const char* path :
       {"usr/include/chord/engine.h", "usr/include/chord/abi/layout.h",
        "usr/" CHORD_LIBDIR "/libchord_jit.a", "usr/" CHORD_LIBDIR "/libchord_jit.so",
        "usr/" CHORD_LIBDIR "/pkgconfig/chord_jit.pc",
        "usr/" CHORD_LIBDIR "/cmake/chord_jit/chord_jit-config.cmake",
        "usr/share/doc/libchord-jit-dev/copyright"})
    EXPECT_TRUE(has_line(contents, path)) << path << "\n" << contents;
  EXPECT_EQ(contents.find("usr/bin"), std::string::npos);
}

TEST(Debian, ToolsPackageHoldsToolsAndTheirManPages) {
  CHORD_NEEDS_PACKAGES();
  const std::string contents = packages().contents("chord-jit-tools");
  for (const std::string& tool : tool_names()) {
    EXPECT_TRUE(has_line(contents, "usr/bin/" + tool)) << contents;
    EXPECT_TRUE(has_line(contents, "usr/share/man/man1/" + tool + ".1.gz")) << contents;
  }
  EXPECT_EQ(contents.find("libchord_jit"), std::string::npos) << contents;
}

TEST(Debian, DependenciesAreThoseOfTheBinaries) {
  CHORD_NEEDS_PACKAGES();
  for (const std::string& package : {library_package(), std::string("chord-jit-tools")}) {
    const std::string depends = packages().field(package, "Depends");
    for (const char* needed : {"libc6", "libsodium23", "libxxhash0"})
      EXPECT_NE(depends.find(needed), std::string::npos) << package << ": " << depends;
  }
}

TEST(Debian, LibraryPackageTellsOthersWhatToDependOn) {
  CHORD_NEEDS_PACKAGES();
  EXPECT_EQ(shell("dpkg-deb -I '" + packages().file(library_package()) + "' shlibs").out,
            "libchord_jit " + interface_version() + " " + library_package() +
                " (>= " + kVersionText + ")\n");
}

TEST(Debian, DevelopmentPackageWantsItsOwnLibrary) {
  CHORD_NEEDS_PACKAGES();
  EXPECT_EQ(packages().field("libchord-jit-dev", "Depends"),
            library_package() + " (= " + kVersionText + ")\n");
  EXPECT_NE(packages().field("libchord-jit-dev", "Recommends").find("libsodium-dev"),
            std::string::npos);
}

TEST(Debian, EveryPackageSaysWhatItIs) {
  CHORD_NEEDS_PACKAGES();
  for (const std::string& package :
       {library_package(), std::string("libchord-jit-dev"), std::string("chord-jit-tools")}) {
    EXPECT_EQ(packages().field(package, "Version"), std::string(kVersionText) + "\n");
    EXPECT_NE(packages().field(package, "Description").find("mixture-of-experts"),
              std::string::npos);
    EXPECT_NE(packages().field(package, "Maintainer"), "\n");
  }
}

}  // namespace
}  // namespace chord::packaging_test
