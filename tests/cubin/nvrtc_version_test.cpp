// No compiler, the wrong one, one that is too old, several at once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/cubin/nvrtc.h"

namespace chord {
namespace {

using cubin::NvrtcCompiler;
using test::contains;
namespace fs = std::filesystem;

constexpr const char* kTrivial = "extern \"C\" __global__ void chord_kernel() {}";

std::atomic<int> programs{0};

cuda::nvrtcResult count_program(cuda::nvrtcProgram*, const char*, const char*, int,
                                const char* const*, const char* const*) {
  ++programs;
  return 1;
}

// A table that must not be asked to compile.
cuda::NvrtcApi old_nvrtc(int major, int minor) {
  cuda::NvrtcApi api;
  api.get_error_string = [](cuda::nvrtcResult) { return "an error"; };
  api.create_program = count_program;
  api.major = major;
  api.minor = minor;
  api.path = "/opt/old/libnvrtc.so.12";
  return api;
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("chord-wheel-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  void put(const std::string& name) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << "no library";
  }

 private:
  fs::path path_;
};

TEST(NvrtcVersion, TooOldForTheArchitectureNamesPathFoundAndNeeded) {
  struct Case {
    int major, minor;
    Architecture arch;
    const char* found;
    const char* needed;
  };
  for (const Case& c : {Case{12, 7, Architecture::sm_100a, "12.7", "12.8"},
                        Case{12, 8, Architecture::sm_103a, "12.8", "12.9"},
                        Case{11, 8, Architecture::sm_90a, "11.8", "12.0"}}) {
    programs = 0;
    NvrtcCompiler compiler(old_nvrtc(c.major, c.minor));
    const auto cubin = compiler.compile({.name = "old.cu", .source = kTrivial, .arch = c.arch});
    ASSERT_FALSE(cubin.ok());
    EXPECT_EQ(cubin.error().code, ErrorCode::unavailable);
    const std::string text = cubin.error().message();
    EXPECT_TRUE(contains(text, "/opt/old/libnvrtc.so.12")) << text;
    EXPECT_TRUE(contains(text, c.found) && contains(text, c.needed)) << text;
    EXPECT_TRUE(contains(text, name(c.arch))) << text;
    EXPECT_EQ(programs, 0) << "the compiler was asked";
  }
}

TEST(NvrtcVersion, NewEnoughPasses) {
  for (const Architecture arch :
       {Architecture::sm_90a, Architecture::sm_100a, Architecture::sm_103a}) {
    EXPECT_TRUE(check_nvrtc_version(old_nvrtc(12, 9), arch).ok());
    EXPECT_TRUE(check_nvrtc_version(old_nvrtc(13, 0), arch).ok());
  }
  EXPECT_TRUE(check_nvrtc_version(old_nvrtc(12, 0), Architecture::sm_90a).ok());
  EXPECT_TRUE(check_nvrtc_version(old_nvrtc(12, 10), Architecture::sm_100a).ok());
}

TEST(NvrtcLibrary, AMissingOneIsNamedAndTheHelpSaysWhatToDo) {
  NvrtcCompiler compiler("/no/such/folder/libnvrtc.so.13");
  const auto identity = compiler.identity();
  ASSERT_FALSE(identity.ok());
  EXPECT_EQ(identity.error().code, ErrorCode::unavailable);
  const std::string text = identity.error().message();
  EXPECT_TRUE(contains(text, "/no/such/folder/libnvrtc.so.13")) << text;
  EXPECT_TRUE(contains(text, "CHORD_NVRTC_LIBRARY")) << text;
  EXPECT_TRUE(contains(text, "No such file")) << text;
  const auto cubin = compiler.compile({.name = "x.cu", .source = kTrivial});
  ASSERT_FALSE(cubin.ok());
  EXPECT_EQ(cubin.error().message(), text);
}

TEST(NvrtcLibrary, AFileThatIsNoLibraryIsNamed) {
  const Folder folder;
  folder.put("libnvrtc.so.13");
  const auto api = cuda::open_nvrtc((folder.path() / "libnvrtc.so.13").string());
  ASSERT_FALSE(api.ok());
  EXPECT_TRUE(contains(api.error().message(), folder.path().string())) << api.error().message();
}

TEST(NvrtcLibrary, AnotherLibraryIsRefused) {
  const auto api = cuda::open_nvrtc("libm.so.6");
  ASSERT_FALSE(api.ok());
  EXPECT_TRUE(contains(api.error().message(), "libm")) << api.error().message();
  EXPECT_TRUE(contains(api.error().message(), "entry points")) << api.error().message();
}

TEST(NvrtcLibrary, AFolderWithoutOneIsRefused) {
  const Folder folder;
  const auto api = cuda::open_nvrtc(folder.path().string());
  ASSERT_FALSE(api.ok());
  EXPECT_TRUE(contains(api.error().message(), folder.path().string())) << api.error().message();
  EXPECT_TRUE(contains(api.error().message(), "libnvrtc.so.13")) << api.error().message();
}

TEST(NvrtcLibrary, AnEmptyPathDoesNotOpenTheProgramItself) {
  EXPECT_FALSE(cuda::open_nvrtc("").ok());
}

TEST(NvrtcLibrary, WheelsAndToolkitsAreFoundInTheFolderThatIsNamed) {
  for (const char* place :
       {"libnvrtc.so.13", "lib64/libnvrtc.so.13", "lib/libnvrtc.so.12",
        "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"}) {
    const Folder folder;
    folder.put(place);
    const auto candidates = cuda::nvrtc_candidates(folder.path().string());
    ASSERT_EQ(candidates.size(), 1u) << place;
    EXPECT_EQ(candidates[0], (folder.path() / place).string());
  }
}

TEST(NvrtcLibrary, TheNewerOfTwoComesFirst) {
  const Folder folder;
  folder.put("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  folder.put("nvidia/cu13/lib/libnvrtc.so.13");
  const auto candidates = cuda::nvrtc_candidates(folder.path().string());
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_TRUE(contains(candidates[0], "libnvrtc.so.13"));
}

TEST(NvrtcLibrary, TheSearchBeginsWithTheLoaderAndEndsWithVersion12) {
  const auto candidates = cuda::nvrtc_candidates(std::nullopt);
  ASSERT_GE(candidates.size(), 2u);
  EXPECT_EQ(candidates.front(), "libnvrtc.so.13");
  bool seen_12 = false;
  for (const std::string& candidate : candidates) {
    const bool is_12 = contains(candidate, "libnvrtc.so.12");
    EXPECT_TRUE(is_12 || !seen_12) << candidate;
    seen_12 = seen_12 || is_12;
  }
  EXPECT_TRUE(seen_12);
}

TEST(NvrtcLibrary, AToolkitFolderOpens) {
  CHORD_NEEDS_NVRTC(api);
  const auto again = cuda::open_nvrtc(fs::path(api.path).parent_path().string());
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->major, api.major);
}

// A second file of the same library stands for a second version: the loader maps it anew.
TEST(NvrtcLibrary, TwoLibrariesWorkInOneProcess) {
  CHORD_NEEDS_NVRTC(api);
  const Folder folder;
  const fs::path lib = fs::canonical(api.path).parent_path();
  for (const auto& file : fs::directory_iterator(lib)) {
    const std::string name = file.path().filename().string();
    if (name.rfind("libnvrtc", 0) == 0 && !contains(name, ".alt") && !contains(name, ".a"))
      fs::copy_file(file.path(), folder.path() / name);
  }
  const std::string soname = "libnvrtc.so." + std::to_string(api.major);
  NvrtcCompiler first(api);
  NvrtcCompiler second((folder.path() / soname).string());
  const auto one = first.compile({.name = "x.cu", .source = kTrivial});
  const auto two = second.compile({.name = "x.cu", .source = kTrivial});
  ASSERT_TRUE(one.ok()) << one.error().message();
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_EQ(one->compiler, two->compiler);
  EXPECT_EQ(one->cubin, two->cubin);
}

TEST(CompileOptions, AreAPureFunctionOfTheArchitectureWithoutPaths) {
  const auto sm_90a = cubin::compile_options(Architecture::sm_90a);
  EXPECT_EQ(sm_90a, cubin::compile_options(Architecture::sm_90a));
  EXPECT_EQ(sm_90a.front(), "--gpu-architecture=sm_90a");
  EXPECT_EQ(cubin::compile_options(Architecture::sm_100a).front(), "--gpu-architecture=sm_100a");
  EXPECT_EQ(cubin::compile_options(Architecture::sm_103a).front(), "--gpu-architecture=sm_103a");
  for (const std::string& option : sm_90a) EXPECT_FALSE(contains(option, "/")) << option;
}

TEST(PtxasLog, FactsOfTheEntryNotOfAnotherFunction) {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'chord_kernel' for 'sm_90a'\n"
      "ptxas info    : Function properties for helper\n"
      "ptxas         .     16 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
      "ptxas info    : Function properties for chord_kernel\n"
      "ptxas         .     256 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 256 bytes cumulative stack size\n";
  const auto facts = cubin::read_ptxas_log(log, "chord_kernel");
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->registers, 168);
  EXPECT_EQ(facts->local_bytes, 256);
  EXPECT_EQ(facts->spill_bytes, 56);
  EXPECT_FALSE(cubin::read_ptxas_log(log, "chord").has_value());
  EXPECT_FALSE(cubin::read_ptxas_log("", "chord_kernel").has_value());
  for (std::size_t size = 0; size < log.find(" registers"); ++size)
    EXPECT_FALSE(cubin::read_ptxas_log(log.substr(0, size), "chord_kernel").has_value()) << size;
}

TEST(PtxasLog, SerialisedWgmmaIsRefusedOtherRemarksAreNot) {
  const std::string line =
      "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized in function 'chord_kernel'";
  EXPECT_EQ(cubin::find_ptxas_refusal("one\n" + line + "\ntwo\n"), line);
  EXPECT_EQ(cubin::find_ptxas_refusal(line), line);
  EXPECT_EQ(cubin::find_ptxas_refusal("(C7508) x"), "(C7508) x");
  EXPECT_EQ(cubin::find_ptxas_refusal("ptxas info : Used 30 registers, C7512\n"), "");
}

TEST(PtxVersion, IsReadFromTheHeader) {
  EXPECT_EQ(cubin::read_ptx_version("// Cuda compilation tools, release 13.0, V13.0.88\n"),
            "13.0.88");
  EXPECT_EQ(cubin::read_ptx_version(".version 9.0\n"), "");
}

}  // namespace
}  // namespace chord
