// A cubin loaded into the current CUDA context, its entry looked up, prepared and checked against
// what was promised. Must not know where the cubin came from or what it computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/cuda/driver_api.h"

namespace chord::module {

// What schedule and cache entry promise of the entry.
struct ExpectedFacts {
  int threads = 0;                 // of one block
  std::int64_t shared_bytes = 0;   // dynamic, per block
  std::optional<int> registers;    // recorded at compile time; empty: not known
  std::optional<int> local_bytes;  // likewise
};

// What the driver says of the loaded entry.
struct LoadedFacts {
  int registers = 0;
  int local_bytes = 0;
  int static_shared_bytes = 0;
  int max_threads = 0;
};

// Unloads with its last owner, in the context it was loaded into.
class LoadedModule {
 public:
  // `label` names the kernel in errors. The first form uses driver_api().
  static Result<std::shared_ptr<const LoadedModule>> load(std::string_view cubin,
                                                          const ExpectedFacts& expected,
                                                          const std::string& label);
  static Result<std::shared_ptr<const LoadedModule>> load(const cuda::DriverApi& driver,
                                                          std::string_view cubin,
                                                          const ExpectedFacts& expected,
                                                          const std::string& label);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  cuda::CUfunction function() const { return function_; }
  cuda::CUcontext context() const { return context_; }
  const LoadedFacts& facts() const { return facts_; }

 private:
  explicit LoadedModule(const cuda::DriverApi& driver) : driver_(driver) {}
  Status load_image(std::string_view cubin, const std::string& label);
  Status read_facts(const std::string& label);
  Status request_shared_bytes(std::int64_t bytes, const std::string& label);

  const cuda::DriverApi& driver_;  // lives as long as the process
  cuda::CUcontext context_ = nullptr;
  cuda::CUmodule module_ = nullptr;
  cuda::CUfunction function_ = nullptr;
  LoadedFacts facts_;
};

}  // namespace chord::module
