// Compiles with the NVRTC of this machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "src/weights/pack_source.h"
#include "tests/cubin/nvrtc.h"

namespace chord {
namespace {

using cubin::CompileRequest;
using cubin::NvrtcCompiler;
using test::contains;

constexpr Architecture kArchitectures[] = {Architecture::sm_90a, Architecture::sm_100a,
                                           Architecture::sm_103a};

CompileRequest plain(const std::string& body) {
  return {
      .name = "plain.cu",
      .source = "extern \"C\" __global__ void chord_kernel(float* x, int n) {\n" + body + "\n}\n"};
}

// The working directory for the life of the object.
class WorkingDirectory {
 public:
  WorkingDirectory()
      : before_(std::filesystem::current_path()),
        folder_(std::filesystem::temp_directory_path() /
                ("chord-nvrtc-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  ~WorkingDirectory() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path before_, folder_;
};

TEST(NvrtcCompiler, CompilesEveryPackerForEveryArchitectureWithNoFileOnDisk) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const WorkingDirectory empty;
  for (const Architecture arch : kArchitectures)
    for (const CodeSource codes : {CodeSource::codes_i32, CodeSource::codes_u8, CodeSource::words,
                                   CodeSource::words_k_major})
      for (const ScaleSource scales : {ScaleSource::row_major, ScaleSource::k_major}) {
        const auto cubin = compiler.compile(test::request_of(
            weights::pack_kernel_name(codes, scales), weights::pack_source(codes, scales), arch));
        ASSERT_TRUE(cubin.ok()) << cubin.error().message();
        EXPECT_EQ(cubin->cubin.substr(0, 4),
                  "\x7f"
                  "ELF");
        EXPECT_GT(cubin->registers, 8);
        EXPECT_LE(cubin->registers, 128);
        EXPECT_EQ(cubin->spill_bytes, 0) << cubin->log;
        EXPECT_EQ(cubin->local_bytes, 0) << cubin->log;
        EXPECT_GT(cubin->compile_ms, 1);
      }
}

TEST(NvrtcCompiler, IdentityIsTheFullVersion) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const auto identity = compiler.identity();
  ASSERT_TRUE(identity.ok()) << identity.error().message();
  int major = 0, minor = 0, build = 0;
  EXPECT_EQ(std::sscanf(identity->c_str(), "NVRTC %d.%d.%d", &major, &minor, &build), 3)
      << *identity;
  EXPECT_EQ(major, api.major);
  EXPECT_EQ(minor, api.minor);
  const auto cubin = compiler.compile(plain("x[0] = n;"));
  ASSERT_TRUE(cubin.ok());
  EXPECT_EQ(cubin->compiler, *identity);
}

TEST(NvrtcCompiler, TheSameRequestGivesTheSameBytes) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler one(api), two(api);
  const auto request = plain("for (int i = 0; i < n; ++i) x[i] += x[2 * i];");
  const auto first = one.compile(request), second = two.compile(request);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->cubin, second->cubin);
}

TEST(NvrtcCompiler, ASyntaxErrorCarriesTheLogWithTheLine) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const auto cubin = compiler.compile(plain("x[0] = 1;\nx[1] = not_declared;"));
  ASSERT_FALSE(cubin.ok());
  EXPECT_EQ(cubin.error().code, ErrorCode::compile_failed);
  const std::string text = cubin.error().message();
  EXPECT_TRUE(contains(text, "plain.cu(3)")) << text;
  EXPECT_TRUE(contains(text, "not_declared")) << text;
  EXPECT_TRUE(contains(text, "sm_90a")) << text;
  // The compiler lives on.
  EXPECT_TRUE(compiler.compile(plain("x[0] = 1;")).ok());
}

TEST(NvrtcCompiler, AnErrorInADeviceHeaderNamesHeaderAndLine) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  CompileRequest request = plain("x[0] = broken();");
  request.source = "#include \"kernels/broken.cuh\"\n" + request.source;
  request.headers = {{"kernels/broken.cuh", "#pragma once\n\ninline float broken() { return }\n"}};
  const auto cubin = compiler.compile(request);
  ASSERT_FALSE(cubin.ok());
  EXPECT_TRUE(contains(cubin.error().message(), "kernels/broken.cuh(3)"))
      << cubin.error().message();
}

TEST(NvrtcCompiler, AFailingStaticAssertPrintsItsText) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const auto cubin = compiler.compile(plain("static_assert(sizeof(int) == 5, \"five bytes\");"));
  ASSERT_FALSE(cubin.ok());
  EXPECT_TRUE(contains(cubin.error().message(), "five bytes")) << cubin.error().message();
}

TEST(NvrtcCompiler, FilesOfTheWorkingDirectoryAreNotIncluded) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const WorkingDirectory folder;
  std::ofstream("stray.h") << "#define STRAY 1\n";
  CompileRequest request = plain("x[0] = STRAY;");
  request.source = "#include \"stray.h\"\n" + request.source;
  const auto cubin = compiler.compile(request);
  ASSERT_FALSE(cubin.ok());
  EXPECT_TRUE(contains(cubin.error().message(), "stray.h")) << cubin.error().message();
}

TEST(NvrtcCompiler, SourceWithoutTheEntryIsAnError) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const auto cubin = compiler.compile(
      {.name = "other.cu", .source = "extern \"C\" __global__ void other(int* x) { *x = 1; }"});
  ASSERT_FALSE(cubin.ok());
  EXPECT_EQ(cubin.error().code, ErrorCode::compile_failed);
  EXPECT_TRUE(contains(cubin.error().message(), "chord_kernel")) << cubin.error().message();
}

TEST(NvrtcCompiler, AnUnknownOptionIsAnErrorThatNamesIt) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  CompileRequest request = plain("x[0] = 1;");
  request.options = {"--no-such-option"};
  const auto cubin = compiler.compile(request);
  ASSERT_FALSE(cubin.ok());
  EXPECT_TRUE(contains(cubin.error().message(), "--no-such-option")) << cubin.error().message();
}

TEST(NvrtcCompiler, FurtherOptionsReachTheCompiler) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  CompileRequest request = plain("x[0] = VALUE;");
  EXPECT_FALSE(compiler.compile(request).ok());
  request.options = {"--define-macro=VALUE=3"};
  EXPECT_TRUE(compiler.compile(request).ok());
}

TEST(NvrtcCompiler, LocalMemoryAndSpillsAreReported) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  const auto stack =
      compiler.compile(plain("float a[64]; for (int i = 0; i < 64; ++i) a[i] = x[i];\n"
                             "for (int j = 0; j < n; ++j) a[j * 7 & 63] += a[j & 63];\n"
                             "for (int i = 0; i < 64; ++i) x[i] = a[i];"));
  ASSERT_TRUE(stack.ok()) << stack.error().message();
  EXPECT_EQ(stack->local_bytes, 256);
  EXPECT_EQ(stack->spill_bytes, 0);
  CompileRequest starved = plain(
      "float a[96]; for (int i = 0; i < 96; ++i) a[i] = x[i * n];\n"
      "__syncthreads(); for (int i = 0; i < 96; ++i) x[i] = a[i] * a[95 - i];");
  starved.options = {"--maxrregcount=32"};
  const auto spilled = compiler.compile(starved);
  ASSERT_TRUE(spilled.ok()) << spilled.error().message();
  EXPECT_LE(spilled->registers, 32);
  EXPECT_GT(spilled->spill_bytes, 0);
  EXPECT_GT(spilled->local_bytes, 0);
}

TEST(NvrtcCompiler, AnIgnoredSetmaxnregIsAnError) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  // Without launch bounds ptxas does not know the count at entry, and drops the instruction.
  const auto cubin = compiler.compile(
      plain("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\"); x[threadIdx.x] = 1;"));
  ASSERT_FALSE(cubin.ok());
  EXPECT_TRUE(contains(cubin.error().message(), "C7508")) << cubin.error().message();
  EXPECT_TRUE(contains(cubin.error().message(), "setmaxnreg")) << cubin.error().message();
}

TEST(NvrtcCompiler, OneCompilerServesManyThreads) {
  CHORD_NEEDS_NVRTC(api);
  NvrtcCompiler compiler(api);
  std::vector<std::string> cubins(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cubins.size(); ++i)
    threads.emplace_back([&, i] {
      const auto cubin = compiler.compile(plain("x[0] = " + std::to_string(i % 4) + ";"));
      if (cubin.ok()) cubins[i] = cubin->cubin;
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(cubins[i].empty());
    EXPECT_EQ(cubins[i], cubins[i + 4]);
    EXPECT_NE(cubins[i], cubins[(i + 1) % 4]);
  }
}

}  // namespace
}  // namespace chord
