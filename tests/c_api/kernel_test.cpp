// Kernels as objects, and preparing on a machine without a driver.
#include <algorithm>

#include "src/base/dynamic_library.h"
#include "tests/c_api/made_up_kernel.h"

namespace chord::c_api_test {
namespace {

TEST(Kernel, GivesWhatWasLoaded) {
  const KernelPointer kernel = owned(Family::indexed);
  chord_kernel_info_t info = chord_kernel_info_init();
  REQUIRE_SUCCESS(chord_kernel_get_info(kernel.get(), &info));
  EXPECT_STREQ(info.key, "the-key");
  EXPECT_STREQ(info.compiler, "NVRTC 0");
  EXPECT_EQ(info.compile_ms, 5);
  EXPECT_EQ(info.workspace_bytes, kernel->prepared.workspace_bytes());
  EXPECT_EQ(info.workspace_flag_bytes, kernel->prepared.workspace_flag_bytes());
  EXPECT_EQ(info.block_m, 16);
  EXPECT_EQ(info.ctas, 132);
  EXPECT_EQ(info.threads, 384);
  EXPECT_EQ(info.shared_bytes, 1024);
  EXPECT_EQ(info.registers, 168);
  EXPECT_EQ(info.local_bytes, 8);
}

TEST(Kernel, GivesItsPlan) {
  const KernelPointer kernel = owned(Family::indexed);
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_kernel_get_plan(kernel.get(), plan.out()));
  chord_gemm_descriptor_t descriptor = chord_gemm_descriptor_init();
  REQUIRE_SUCCESS(chord_plan_get_descriptor(plan, &descriptor));
  EXPECT_EQ(descriptor.n, 256);
}

TEST(Kernel, UnloadsWithItsLastOwner) {
  const chord_kernel_t kernel = made_up_kernel(Family::indexed);
  test::fake.calls.clear();
  const auto is_unloaded = [] {
    return std::count(test::fake.calls.begin(), test::fake.calls.end(), "unload") == 1;
  };
  chord_kernel_retain(kernel);
  chord_kernel_destroy(kernel);
  EXPECT_FALSE(is_unloaded());
  chord_kernel_destroy(kernel);
  EXPECT_TRUE(is_unloaded());
}

bool machine_has_a_driver() { return base::DynamicLibrary::open("libcuda.so.1").ok(); }

TEST_F(CApiTest, WithoutADriverEverythingOfTheGpuIsUnavailable) {
  if (machine_has_a_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  REQUIRE_SUCCESS(chord_plan_gemm(handle_, &descriptor, plan.out()));
  OwnedKernel kernel;
  chord_device_t device = chord_device_init();
  alignas(16) std::uint16_t bytes[8] = {};
  std::uint64_t word = 0;
  chord_weight_source_t source = chord_weight_source_init();
  source.codes = source.scales = bytes;
  chord_packed_weight_t weight = chord_packed_weight_init();
  weight.codes = weight.scales = bytes;
  weight.experts = 1;
  weight.n = weight.k = 64;
  const auto expect_unavailable = [](chord_status_t status) {
    EXPECT_EQ(status, CHORD_ERROR_UNAVAILABLE);
    EXPECT_TRUE(contains(chord_last_error()->message, cuda::driver_api().error().message()))
        << chord_last_error()->message;
  };
  expect_unavailable(chord_prepare(handle_, plan, kernel.out()));
  expect_unavailable(chord_prepare_gemm(handle_, &descriptor, kernel.out()));
  chord_layer_kernels_t layer_kernels = nullptr;
  expect_unavailable(chord_layer_kernels_prepare(handle_, &layer_kernels));
  expect_unavailable(chord_device_query(handle_, &device));
  expect_unavailable(chord_pack(handle_, &source, &weight, &word, nullptr));
}

TEST_F(CApiTest, AHandleOfADevicePlansWithoutADriver) {
  if (machine_has_a_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  chord_options_t options = chord_options_init();
  const std::string cache = folder_ / "cache";
  options.cache_dir = cache.c_str();
  options.device = 3;
  OwnedHandle handle;
  REQUIRE_SUCCESS(chord_create(&options, handle.out()));
  const chord_gemm_descriptor_t descriptor = decode();
  OwnedPlan plan;
  EXPECT_SUCCESS(chord_plan_gemm(handle, &descriptor, plan.out()));
  OwnedKernel kernel;
  EXPECT_EQ(chord_prepare(handle, plan, kernel.out()), CHORD_ERROR_UNAVAILABLE);
}

}  // namespace
}  // namespace chord::c_api_test
