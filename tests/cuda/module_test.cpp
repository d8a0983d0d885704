// Loading on a made-up driver: what is checked, what is refused, what is given back.
#include "src/module/module.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/cuda/fake_driver.h"

namespace chord {
namespace {

using module::ExpectedFacts;
using module::LoadedModule;
using test::contains;
using test::fake;
using Calls = std::vector<std::string>;

// An ELF header and an empty section table behind it.
std::string small_elf() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof(header);
  header.e_shnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  std::string image(sizeof(header) + 2 * sizeof(Elf64_Shdr), '\0');
  std::memcpy(image.data(), &header, sizeof(header));
  return image;
}

const ExpectedFacts kFacts{
    .threads = 384, .shared_bytes = 200000, .registers = 168, .local_bytes = 0};

auto load(const cuda::DriverApi& driver, const ExpectedFacts& facts = kFacts,
          const std::string& image = small_elf()) {
  return LoadedModule::load(driver, image, facts, "moe kernel");
}

TEST(Module, LoadsAndRequestsItsSharedMemory) {
  const cuda::DriverApi& driver = test::fake_driver();
  const auto loaded = load(driver);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ((*loaded)->facts().registers, 168);
  EXPECT_EQ((*loaded)->function(), reinterpret_cast<cuda::CUfunction>(0x30));
  EXPECT_EQ((*loaded)->context(), fake.current);
  EXPECT_EQ(fake.calls, (Calls{"load", "set 8 200000"}));
}

TEST(Module, LoadsAndUnloadsWithoutSpoilingACapture) {
  const cuda::DriverApi& driver = test::fake_driver();
  auto loaded = load(driver);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(fake.mode_of_load, cuda::CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(fake.capture_mode, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL);
  fake.mode_of_load = cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;
  loaded = Error{};
  EXPECT_EQ(fake.mode_of_load, cuda::CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(fake.capture_mode, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST(Module, UnloadsWithItsLastOwnerInItsOwnContext) {
  const cuda::DriverApi& driver = test::fake_driver();
  auto loaded = load(driver);
  ASSERT_TRUE(loaded.ok());
  std::shared_ptr<const LoadedModule> copy = *loaded;
  fake.current = reinterpret_cast<cuda::CUcontext>(0x99);
  fake.calls.clear();
  loaded = Error{};
  EXPECT_EQ(fake.calls, Calls{});
  copy.reset();
  EXPECT_EQ(fake.calls, (Calls{"push 16", "unload", "pop"}));
}

TEST(Module, OtherRegistersOrLocalMemoryThanRecordedNameBothNumbers) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.function_attributes[cuda::CU_FUNC_ATTRIBUTE_NUM_REGS] = 170;
  const auto registers = load(driver);
  ASSERT_FALSE(registers.ok());
  EXPECT_EQ(registers.error().code, ErrorCode::corrupt);
  EXPECT_TRUE(contains(registers.error().message(), "170"));
  EXPECT_TRUE(contains(registers.error().message(), "168"));
  EXPECT_EQ(fake.calls.back(), "pop");  // nothing stays loaded

  test::fake_driver();
  fake.function_attributes[cuda::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = 48;
  const auto local = load(driver);
  ASSERT_FALSE(local.ok());
  EXPECT_TRUE(contains(local.error().message(), "48 B of local memory"));
}

TEST(Module, FactsThatWereNotRecordedAreNotCompared) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.function_attributes[cuda::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = 48;
  EXPECT_TRUE(
      load(driver, {.threads = 384, .shared_bytes = 0, .registers = {}, .local_bytes = {}}).ok());
}

TEST(Module, FewerThreadsThanTheScheduleHasAreRefused) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.function_attributes[cuda::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 256;
  const auto loaded = load(driver);
  ASSERT_FALSE(loaded.ok());
  EXPECT_TRUE(contains(loaded.error().message(), "256"));
  EXPECT_TRUE(contains(loaded.error().message(), "384"));
}

TEST(Module, MoreSharedMemoryThanTheDeviceHasIsRefusedWithBothNumbers) {
  const cuda::DriverApi& driver = test::fake_driver();
  ExpectedFacts facts = kFacts;
  facts.shared_bytes = 232448;
  EXPECT_TRUE(load(driver, facts).ok());
  fake.function_attributes[cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 16;
  const auto loaded = load(driver, facts);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(contains(loaded.error().message(), "232448 B of dynamic shared memory"));
  EXPECT_TRUE(contains(loaded.error().message(), "16 B of them"));
}

TEST(Module, AnImageThatIsCutOffNeverReachesTheDriver) {
  const std::string whole = small_elf();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const cuda::DriverApi& driver = test::fake_driver();
    const auto loaded = load(driver, kFacts, whole.substr(0, size));
    ASSERT_FALSE(loaded.ok()) << size;
    EXPECT_EQ(loaded.error().code, ErrorCode::corrupt);
    EXPECT_EQ(fake.calls, Calls{});
  }
}

TEST(Module, AnImageWhoseSectionTableWrapsAroundIsRefused) {
  for (const std::uint64_t offset : {~0ull, ~0ull - 127, 1ull << 63}) {
    std::string image = small_elf();
    std::memcpy(image.data() + offsetof(Elf64_Ehdr, e_shoff), &offset, sizeof(offset));
    EXPECT_FALSE(load(test::fake_driver(), kFacts, image).ok()) << offset;
  }
  EXPECT_FALSE(load(test::fake_driver(), kFacts, std::string(200, 'x')).ok());
}

TEST(Module, WithoutACurrentContextNothingIsLoaded) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.current = nullptr;
  const auto loaded = load(driver);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
  EXPECT_EQ(fake.calls, Calls{});
}

TEST(Module, AnotherArchitecturesCubinIsRefusedInWords) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.load_result = cuda::CUDA_ERROR_NO_BINARY_FOR_GPU;
  const auto loaded = load(driver);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(contains(loaded.error().message(), "another architecture"));
  EXPECT_EQ(fake.calls, Calls{"load"});
}

TEST(Module, ACubinWithoutTheEntryIsRefusedAndUnloaded) {
  const cuda::DriverApi& driver = test::fake_driver();
  fake.entry = "something_else";
  const auto loaded = load(driver);
  ASSERT_FALSE(loaded.ok());
  EXPECT_TRUE(contains(loaded.error().message(), "chord_kernel"));
  EXPECT_EQ(fake.calls, (Calls{"load", "push 16", "unload", "pop"}));
}

}  // namespace
}  // namespace chord
