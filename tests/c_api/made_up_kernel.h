// A kernel as prepare would have made it, on a driver that only remembers what it was to launch.
#pragma once

#include <elf.h>

#include <memory>
#include <utility>

#include "src/c_api/handles.h"
#include "src/prepared_kernel.h"
#include "tests/c_api/fixture.h"
#include "tests/cuda/fake_driver.h"

namespace chord::c_api_test {

// What the made-up driver was asked to launch.
struct Launched {
  int count = 0;
  unsigned ctas = 0;
  unsigned attributes = 0;
  cuda::CUstream stream = nullptr;
  abi::GemmParams params;
};

inline Launched launched;

inline cuda::DriverApi launching_driver() {
  cuda::DriverApi driver = test::fake_driver();
  driver.tensor_map_encode_tiled =
      [](cuda::CUtensorMap* map, cuda::CUtensorMapDataType type, std::uint32_t, void* address,
         const std::uint64_t* sizes, const std::uint64_t*, const std::uint32_t*,
         const std::uint32_t*, cuda::CUtensorMapInterleave, cuda::CUtensorMapSwizzle,
         cuda::CUtensorMapL2promotion, cuda::CUtensorMapFloatOOBfill) {
        *map = {};
        map->opaque[0] = reinterpret_cast<std::uint64_t>(address);
        map->opaque[1] = sizes[2];
        map->opaque[2] = static_cast<std::uint64_t>(type);
        return cuda::CUDA_SUCCESS;
      };
  driver.launch_kernel_ex = [](const cuda::CUlaunchConfig* config, cuda::CUfunction,
                               void** parameters, void**) {
    ++launched.count;
    launched.ctas = config->gridDimX;
    launched.attributes = config->numAttrs;
    launched.stream = config->hStream;
    std::memcpy(&launched.params, parameters[0], sizeof launched.params);
    return cuda::CUDA_SUCCESS;
  };
  return driver;
}

inline std::string small_elf() {
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

// A kernel of the family, N 256, K 128, as prepare would have made it on an H200.
inline chord_kernel_t made_up_kernel(Family family, Epilogue epilogue = Epilogue::none) {
  static const cuda::DriverApi driver = launching_driver();
  test::fake_driver();  // with its answers reset
  auto state = std::make_shared<PreparedKernel::State>();
  state->driver = &driver;
  state->key = "the-key";
  state->facts = {.threads = 384,
                  .shared_bytes = 1024,
                  .registers = 168,
                  .local_bytes = 8,
                  .compile_ms = 5,
                  .compiler = "NVRTC 0"};
  GemmDescriptor& descriptor = state->decision.descriptor;
  descriptor.family = family;
  descriptor.n = 256;
  descriptor.k = 128;
  state->decision.kernel.block_m = 16;
  state->decision.kernel.epilogue = epilogue;
  state->shape = {.problem = {256, 128, family}, .schedule = state->decision.kernel, .ctas = 132};
  auto module =
      module::LoadedModule::load(driver, small_elf(), {384, 1024, 168, std::nullopt}, "made up");
  EXPECT_TRUE(module.ok());
  state->module = *module;
  return new chord_kernel{PreparedKernel(std::move(state))};
}

using KernelPointer = std::unique_ptr<chord_kernel, void (*)(chord_kernel_t)>;

inline KernelPointer owned(Family family, Epilogue epilogue = Epilogue::none) {
  return {made_up_kernel(family, epilogue), chord_kernel_destroy};
}

}  // namespace chord::c_api_test
