// The driver that is not there, the one that is something else, and the names of its entries.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "src/base/dynamic_library.h"
#include "src/cuda/device.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/memory.h"
#include "tests/cuda/fake_driver.h"

namespace chord {
namespace {

using test::contains;

bool machine_has_a_driver() { return base::DynamicLibrary::open("libcuda.so.1").ok(); }

TEST(Driver, MissingIsAnErrorThatSaysWhatWasTriedAndWhatHelps) {
  if (machine_has_a_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  const auto driver = cuda::driver_api();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, ErrorCode::unavailable);
  const std::string text = driver.error().message();
  EXPECT_TRUE(contains(text, "libcuda.so.1")) << text;
  EXPECT_TRUE(contains(text, "install an NVIDIA driver")) << text;
}

TEST(Driver, EverythingThatNeedsOneSaysSo) {
  if (machine_has_a_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  const std::string text = cuda::driver_api().error().message();
  EXPECT_EQ(cuda::current_device().error().message(), text);
  EXPECT_EQ(cuda::retain_primary_context(0).error().message(), text);
  EXPECT_EQ(cuda::DeviceBuffer::allocate(16).error().message(), text);
  EXPECT_EQ(cuda::OwnedStream::create().error().message(), text);
  EXPECT_EQ(cuda::Event::create().error().message(), text);
}

TEST(Driver, ManyThreadsGetTheSameAnswer) {
  std::vector<std::string> answers(8);
  std::vector<std::thread> threads;
  for (std::string& answer : answers)
    threads.emplace_back([&answer] {
      const auto driver = cuda::driver_api();
      answer = driver.ok() ? (*driver)->path : driver.error().message();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_FALSE(answers[0].empty());
}

TEST(Driver, EveryLibraryThatWasTriedIsNamed) {
  const auto driver = cuda::open_driver({"libchord-none.so.1", "/no/such/libcuda.so.1"});
  ASSERT_FALSE(driver.ok());
  EXPECT_TRUE(contains(driver.error().message(), "libchord-none.so.1"));
  EXPECT_TRUE(contains(driver.error().message(), "/no/such/libcuda.so.1"));
}

TEST(Driver, ALibraryThatIsNoDriverIsRefusedWithWhatItLacks) {
  const auto driver = cuda::open_driver({"libm.so.6"});
  ASSERT_FALSE(driver.ok());
  const std::string text = driver.error().message();
  EXPECT_TRUE(contains(text, "libm")) << text;
  EXPECT_TRUE(contains(text, "cuInit") && contains(text, "cuTensorMapEncodeTiled")) << text;
}

// A toolkit's link-time stub exports the driver's names: a misspelt symbol or version shows here.
TEST(Driver, EveryEntryOfTheTableExistsInTheToolkitsStub) {
  const std::string stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(stub)) GTEST_SKIP() << "no " << stub;
  const auto driver = cuda::open_driver({stub});
  ASSERT_TRUE(driver.ok()) << driver.error().message();
#define CHORD_EXPECT_MEMBER(member, symbol, parameters) EXPECT_NE(driver->member, nullptr);
  CHORD_DRIVER_ENTRIES(CHORD_EXPECT_MEMBER)
#undef CHORD_EXPECT_MEMBER
}

TEST(Driver, CheckPassesSuccessAndNamesWhatFailed) {
  EXPECT_TRUE(cuda::check(cuda::CUDA_SUCCESS, "nothing").ok());
  const Status failed = cuda::check(cuda::CUDA_ERROR_OUT_OF_MEMORY, "allocate 7 B");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::driver_error);
  EXPECT_TRUE(contains(failed.error().message(), "allocate 7 B"));
  EXPECT_TRUE(contains(failed.error().message(), "2")) << failed.error().message();
}

TEST(Device, IsThatOfTheCurrentContext) {
  const auto device = cuda::current_device(test::fake_driver());
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(*device, (cuda::Device{3, 9, 0, 132, Architecture::sm_90a, "Fake H200"}));
}

TEST(Device, WithoutACurrentContextTheErrorSaysToMakeOneCurrent) {
  const cuda::DriverApi& driver = test::fake_driver();
  test::fake.current = nullptr;
  const auto device = cuda::current_device(driver);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(contains(device.error().message(), "make one current"));
}

TEST(Device, IsTheOneThatWasRequired) {
  EXPECT_TRUE(cuda::require_device(test::fake_driver(), 3).ok());
}

TEST(Device, AnotherThanTheRequiredIsRefusedByBothNumbers) {
  const Status status = cuda::require_device(test::fake_driver(), 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(contains(status.error().asked, "GPU 1")) << status.error().message();
  EXPECT_TRUE(contains(status.error().found, "GPU 3")) << status.error().message();
}

TEST(Device, ARequiredOneNeedsACurrentContext) {
  const cuda::DriverApi& driver = test::fake_driver();
  test::fake.current = nullptr;
  const Status status = cuda::require_device(driver, 3);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unavailable);
}

TEST(Device, NoneIsRequiredWithoutAskingTheDriver) {
  EXPECT_TRUE(cuda::require_device(cuda::DriverApi{}, -1).ok());
}

TEST(Device, OtherArchitecturesAreRefusedByName) {
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {12, 0}, {12, 1}}) {
    const cuda::DriverApi& driver = test::fake_driver();
    test::fake.device_attributes[cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = major;
    test::fake.device_attributes[cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = minor;
    const auto device = cuda::current_device(driver);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, ErrorCode::unsupported);
    EXPECT_TRUE(
        contains(device.error().message(), std::to_string(major) + "." + std::to_string(minor)));
  }
}

TEST(DynamicLibrary, FindsSymbolsAndTellsItsFile) {
  const auto library = base::DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.error().message();
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->find("cos", cosine));
  EXPECT_EQ(cosine(0), 1.0);
  EXPECT_TRUE(contains(library->path(), "libm.so.6"));
  EXPECT_TRUE(std::filesystem::exists(library->path())) << library->path();
  EXPECT_EQ(library->symbol("chord_no_such_symbol"), nullptr);
}

TEST(DynamicLibrary, MissingAndEmptyNamesAreErrors) {
  const auto missing = base::DynamicLibrary::open("libchord-none.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(contains(missing.error().message(), "libchord-none.so"));
  EXPECT_FALSE(base::DynamicLibrary::open("").ok());
}

}  // namespace
}  // namespace chord
