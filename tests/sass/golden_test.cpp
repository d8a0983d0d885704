// The kernels of the golden list compile without spills, all but one, and their registers, shared
// memory and instructions per loop are those recorded with this NVRTC: a regression is seen without
// a GPU.
#include "tests/sass/golden.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/environment.h"
#include "src/sass/disassembler.h"

namespace chord::sass_test {
namespace {

using Json = nlohmann::ordered_json;

const Result<std::string>& nvdisasm() {
  static const Result<std::string> found = sass::find_nvdisasm(base::process_environment());
  return found;
}

// Built once for all tests.
const Result<std::vector<BuiltKernel>>& built_kernels() {
  static const Result<std::vector<BuiltKernel>> built =
      build_kernels(nvdisasm().ok() ? std::optional(*nvdisasm()) : std::nullopt);
  return built;
}

Json golden_of(const std::string& version) {
  std::ifstream file(golden_path(version), std::ios::binary);
  return Json::parse(file, nullptr, false);
}

std::string known_versions() {
  std::string text;
  for (const std::string& version : golden_versions()) text += (text.empty() ? "" : ", ") + version;
  return text;
}

constexpr const char* kHint = "; if that is meant: chord-test-sass --update-golden";

#define CHORD_NEEDS_A_COMPILER()                                          \
  const Result<std::string> version = nvrtc_version();                    \
  if (!version.ok()) GTEST_SKIP() << version.error().message();           \
  ASSERT_TRUE(built_kernels().ok()) << built_kernels().error().message(); \
  const std::vector<BuiltKernel>& kernels = *built_kernels()

#define CHORD_NEEDS_GOLDEN()                                                          \
  const Json golden = golden_of(*version);                                            \
  if (!golden.is_object())                                                            \
  GTEST_SKIP() << "no counts were recorded with NVRTC " << *version << ", only with " \
               << known_versions() << "; chord-test-sass --update-golden records them"

TEST(SassGolden, NoKernelSpillsButTheWidestOfSwiglu) {
  CHORD_NEEDS_A_COMPILER();
  for (const BuiltKernel& built : kernels) {
    const KernelSchedule& schedule = built.kernel.decision.kernel;
    // The widest tile of SwiGLU keeps two registers in local memory, once per tile.
    const int most = schedule.epilogue == Epilogue::swiglu && schedule.tile_m == 104 ? 8 : 0;
    EXPECT_LE(built.cubin.spill_bytes, 2 * most) << built.kernel.label;
    EXPECT_LE(built.cubin.local_bytes, most) << built.kernel.label;
  }
}

TEST(SassGolden, RegistersAndSharedMemoryAreTheRecordedOnes) {
  CHORD_NEEDS_A_COMPILER();
  CHORD_NEEDS_GOLDEN();
  for (const BuiltKernel& built : kernels) {
    Json recorded = golden["kernels"].value(built.kernel.label, Json::object());
    recorded.erase("loops");
    EXPECT_EQ(facts_json(built), recorded) << built.kernel.label << kHint;
  }
}

TEST(SassGolden, InstructionsOfTheLoopsAreTheRecordedOnes) {
  CHORD_NEEDS_A_COMPILER();
  if (!nvdisasm().ok()) GTEST_SKIP() << nvdisasm().error().message();
  CHORD_NEEDS_GOLDEN();
  for (const BuiltKernel& built : kernels) {
    const Json recorded = golden["kernels"].value(built.kernel.label, Json::object());
    EXPECT_EQ(loops_json(built), recorded.value("loops", Json::array()))
        << built.kernel.label << kHint;
  }
}

// Needs no compiler, so that a file of a version that is not at hand is looked at as well.
TEST(SassGolden, EveryFileHasTheKernelsOfTheListAndNoOther) {
  const Result<std::vector<GoldenKernel>> kernels = golden_kernels();
  ASSERT_TRUE(kernels.ok()) << kernels.error().message();
  std::vector<std::string> labels;
  for (const GoldenKernel& kernel : *kernels) labels.push_back(kernel.label);
  ASSERT_FALSE(golden_versions().empty());
  for (const std::string& version : golden_versions()) {
    const Json golden = golden_of(version);
    ASSERT_TRUE(golden.is_object()) << golden_path(version);
    EXPECT_EQ(golden["nvrtc"], version);
    std::vector<std::string> recorded;
    for (const auto& item : golden["kernels"].items()) recorded.push_back(item.key());
    EXPECT_EQ(recorded, labels) << golden_path(version) << kHint;
  }
}

TEST(SassGolden, ThereIsAKernelOfEveryTileAndArchitecture) {
  const Json golden = golden_of(golden_versions().at(0));
  for (const char* arch : {"sm_90a", "sm_100a", "sm_103a"})
    for (const int tile_m : {16, 24, 32, 40}) {
      int found = 0;
      for (const auto& item : golden["kernels"].items())
        found += item.key().starts_with(arch) &&
                 item.key().find(" mma " + std::to_string(tile_m) + "x512") != std::string::npos;
      EXPECT_GE(found, 1) << arch << " " << tile_m;
    }
  for (const char* tile :
       {" wgmma 32x512", " wgmma 40x512", " wgmma 56x256", " wgmma 72x256", " wgmma 88x256",
        " wgmma 104x256", " wgmma 128x256", " resident 48x128", " resident 64x128",
        " resident 104x128", " resident 144x64", " resident 176x64", " resident 208x64"}) {
    int found = 0;
    for (const auto& item : golden["kernels"].items())
      found += item.key().find(tile) != std::string::npos;
    EXPECT_GE(found, 1) << tile;
  }
}

}  // namespace
}  // namespace chord::sass_test
