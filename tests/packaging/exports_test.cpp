// The interface of the shared library: the recorded symbols, all of them declared in public
// headers, under a name that stays.
#include "tests/packaging/exports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "chord/chord.h"
#include "chord/version.h"
#include "tests/packaging/installed.h"

namespace chord::packaging_test {
namespace {

constexpr const char* kLibrary = CHORD_BINARY_DIR "/libchord_jit.so";
constexpr const char* kHint = "; if that is meant: chord-test-packaging --update-golden";

std::string only_in(const std::vector<std::string>& these, const std::vector<std::string>& those) {
  std::string text;
  for (const std::string& symbol : these)
    if (std::find(those.begin(), those.end(), symbol) == those.end())
      text += "\n  " + symbol + "  " + qualified_name(symbol);
  return text;
}

#define CHORD_NEEDS_SYMBOLS()                                                   \
  CHORD_NEEDS_PROGRAMS("nm");                                                   \
  const Result<std::vector<std::string>> exported = exported_symbols(kLibrary); \
  ASSERT_TRUE(exported.ok()) << exported.error().message();                     \
  const std::vector<std::string>& symbols = *exported

TEST(Exports, AreTheRecordedSymbols) {
  CHORD_NEEDS_SYMBOLS();
  EXPECT_EQ(only_in(symbols, golden_symbols()), "") << "are new" << kHint;
  EXPECT_EQ(only_in(golden_symbols(), symbols), "") << "are gone" << kHint;
}

TEST(Exports, AreAllDeclaredInAPublicHeader) {
  CHORD_NEEDS_SYMBOLS();
  const std::set<std::string> declared = declared_names();
  EXPECT_GT(symbols.size(), 60u);
  for (const std::string& symbol : symbols)
    EXPECT_EQ(declared.count(qualified_name(symbol)), 1u)
        << symbol << " " << qualified_name(symbol);
}

TEST(Exports, HaveEveryFunctionThatAPublicHeaderMarks) {
  CHORD_NEEDS_SYMBOLS();
  std::set<std::string> exported_names;
  for (const std::string& symbol : symbols) exported_names.insert(qualified_name(symbol));
  for (const std::string& name : declared_names()) {
    const bool of_marked_class =
        name.rfind("chord::Engine::", 0) == 0 || name.rfind("chord::PreparedKernel::", 0) == 0;
    if (of_marked_class) continue;  // these have inline functions, too
    EXPECT_EQ(exported_names.count(name), 1u) << name;
  }
}

TEST(Exports, HaveAVersion) {
  CHORD_NEEDS_PROGRAMS("nm");
  const std::string listed =
      shell("nm -D --defined-only --with-symbol-versions '" + std::string(kLibrary) + "'").out;
  const std::string version = "@@CHORD_JIT_" + interface_version() + "\n";
  std::size_t versioned = 0;
  for (std::size_t at = listed.find(version); at != listed.npos; at = listed.find(version, at + 1))
    ++versioned;
  EXPECT_EQ(versioned, golden_symbols().size()) << listed;
}

TEST(Exports, AreOfASonameThatIsTheInterfacesVersion) {
  CHORD_NEEDS_PROGRAMS("readelf");
  const std::string dynamic = shell("readelf -d '" + std::string(kLibrary) + "'").out;
  const std::string soname = "Library soname: [libchord_jit.so." + interface_version() + "]";
  EXPECT_NE(dynamic.find(soname), std::string::npos) << dynamic;
}

// An ABI version of the C face has an interface version of its own, and with it names of its own.
TEST(Exports, HaveAnInterfaceVersionOfEveryAbiVersion) {
  struct Since {
    int abi;
    const char* interface;
  };
  constexpr Since kHistory[] = {{1, "0.1"}};
  const Since& last = *std::rbegin(kHistory);
  EXPECT_EQ(CHORD_ABI_VERSION, last.abi) << "add the new ABI version and a new minor version";
  EXPECT_EQ(interface_version(), last.interface) << "add the new minor version";
  EXPECT_EQ(std::string(kVersionText).rfind(interface_version() + ".", 0), 0u);
  std::set<std::string> interfaces;
  for (const Since& since : kHistory) interfaces.insert(since.interface);
  EXPECT_EQ(interfaces.size(), std::size(kHistory));
}

TEST(DeclaredNames, HoldWhatIsMarkedAndNothingElse) {
  const std::set<std::string> names = declared_names();
  for (const char* name :
       {"chord::Engine::plan", "chord::Engine::~Engine",
        "chord::Engine::operator=", "chord::PreparedKernel::ctas", "chord::Error::message",
        "chord::ScheduleTable::at", "chord::name", "chord::pack_weights", "chord::prometheus_text"})
    EXPECT_EQ(names.count(name), 1u) << name;
  for (const char* name : {"chord::CacheTier::probe", "chord::for_each_field",
                           "chord::PackedShape::weight_bytes", "chord::Result::value"})
    EXPECT_EQ(names.count(name), 0u) << name;
}

TEST(QualifiedName, IsOfFunctionsAndOfCNames) {
  EXPECT_EQ(qualified_name("_ZNK5chord5Error7messageB5cxx11Ev"), "chord::Error::message");
  EXPECT_EQ(qualified_name("_ZN5chord6EngineD1Ev"), "chord::Engine::~Engine");
  EXPECT_EQ(qualified_name("_ZTIN5chord9CacheTierE"), "chord::CacheTier");
  EXPECT_EQ(qualified_name("chord_create"), "chord_create");
}

}  // namespace
}  // namespace chord::packaging_test
