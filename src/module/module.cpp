// Loads, looks up, requests shared memory, reads facts, compares.
#include "src/module/module.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

#include "src/cuda/capture_guard.h"
#include "src/cuda/entry.h"

namespace chord::module {
namespace {

using namespace cuda;

// cuModuleLoadData is given no size, so a cut-off image would be read past its end.
Status check_image(std::string_view cubin, const std::string& label) {
  const auto bad = [&](const std::string& found) {
    return Error{ErrorCode::corrupt, "load the cubin of " + label, found,
                 "remove the cache entry and compile again"};
  };
  Elf64_Ehdr header;
  if (cubin.size() < sizeof(header)) return bad(fmt::format("{} B are no ELF image", cubin.size()));
  std::memcpy(&header, cubin.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return bad("it does not begin like a 64-bit ELF image");
  const std::uint64_t table = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff > cubin.size() || table > cubin.size() - header.e_shoff)
    return bad(fmt::format("{} B, its section table would end at {}", cubin.size(),
                           header.e_shoff + table));
  return {};
}

Error differs(const std::string& label, const std::string& found) {
  return Error{ErrorCode::corrupt, "check the loaded " + label, found,
               "the cubin is not the one that was recorded: remove the cache entry and compile "
               "again"};
}

Status compare(const LoadedFacts& loaded, const ExpectedFacts& expected, const std::string& label) {
  if (expected.registers && loaded.registers != *expected.registers)
    return differs(label,
                   fmt::format("{} registers, recorded {}", loaded.registers, *expected.registers));
  if (expected.local_bytes && loaded.local_bytes != *expected.local_bytes)
    return differs(label, fmt::format("{} B of local memory per thread, recorded {}",
                                      loaded.local_bytes, *expected.local_bytes));
  if (loaded.max_threads < expected.threads)
    return differs(label, fmt::format("at most {} threads in a block, the schedule has {}",
                                      loaded.max_threads, expected.threads));
  return {};
}

}  // namespace

LoadedModule::~LoadedModule() {
  if (module_ == nullptr) return;
  const cuda::CaptureGuard guard(driver_);
  // The caller may be in another context by now, or the context may be gone with its modules.
  if (driver_.ctx_push_current(context_) != CUDA_SUCCESS) return;
  driver_.module_unload(module_);
  CUcontext ignored = nullptr;
  driver_.ctx_pop_current(&ignored);
}

Status LoadedModule::load_image(std::string_view cubin, const std::string& label) {
  CHORD_TRY(check_image(cubin, label));
  CHORD_TRY(check(driver_.ctx_get_current(&context_), "read the current CUDA context"));
  if (context_ == nullptr)
    return Error{ErrorCode::unavailable, "load " + label,
                 "no CUDA context is current on this thread", "make one current first"};
  CUmodule module = nullptr;
  const CUresult loaded = driver_.module_load_data(&module, cubin.data());
  if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return Error{ErrorCode::unsupported, "load the cubin of " + label,
                 "it was compiled for another architecture than the current device's",
                 "plan for the device that is current"};
  CHORD_TRY(check(loaded, "load the cubin of " + label));
  module_ = module;
  return check(driver_.module_get_function(&function_, module_, cuda::kEntryName),
               fmt::format("find {} in the cubin of {}", cuda::kEntryName, label));
}

Status LoadedModule::read_facts(const std::string& label) {
  const auto read = [&](CUfunction_attribute which, int& value) {
    return check(driver_.func_get_attribute(&value, which, function_),
                 "read the attributes of " + label);
  };
  CHORD_TRY(read(CU_FUNC_ATTRIBUTE_NUM_REGS, facts_.registers));
  CHORD_TRY(read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, facts_.local_bytes));
  CHORD_TRY(read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, facts_.static_shared_bytes));
  return read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, facts_.max_threads);
}

Status LoadedModule::request_shared_bytes(std::int64_t bytes, const std::string& label) {
  if (bytes == 0) return {};
  CUdevice device = 0;
  int most = 0;
  CHORD_TRY(check(driver_.ctx_get_device(&device), "read the device of the current CUDA context"));
  CHORD_TRY(check(driver_.device_get_attribute(
                      &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device),
                  "read the shared memory of the device"));
  if (bytes + facts_.static_shared_bytes > most)
    return Error{ErrorCode::unsupported,
                 fmt::format("request {} B of dynamic shared memory for {}", bytes, label),
                 fmt::format("the device gives a block {} B, {} B of them are taken statically",
                             most, facts_.static_shared_bytes),
                 "plan with a smaller tile or fewer stages"};
  return check(
      driver_.func_set_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 static_cast<int>(bytes)),
      fmt::format("request {} B of dynamic shared memory for {}", bytes, label));
}

Result<std::shared_ptr<const LoadedModule>> LoadedModule::load(const DriverApi& driver,
                                                               std::string_view cubin,
                                                               const ExpectedFacts& expected,
                                                               const std::string& label) {
  const cuda::CaptureGuard guard(driver);
  std::shared_ptr<LoadedModule> module(new LoadedModule(driver));
  CHORD_TRY(module->load_image(cubin, label));
  CHORD_TRY(module->read_facts(label));
  CHORD_TRY(compare(module->facts_, expected, label));
  CHORD_TRY(module->request_shared_bytes(expected.shared_bytes, label));
  return std::shared_ptr<const LoadedModule>(std::move(module));
}

Result<std::shared_ptr<const LoadedModule>> LoadedModule::load(std::string_view cubin,
                                                               const ExpectedFacts& expected,
                                                               const std::string& label) {
  CHORD_TRY(const DriverApi* driver, driver_api());
  return load(*driver, cubin, expected, label);
}

}  // namespace chord::module
