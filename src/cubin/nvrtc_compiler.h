// The CubinCompiler that asks NVRTC. The library is opened by the first call that needs it.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "src/cubin/compiler.h"
#include "src/cuda/nvrtc_api.h"

namespace chord::cubin {

class NvrtcCompiler : public CubinCompiler {
 public:
  // `library` as nvrtc_candidates explains; empty searches.
  explicit NvrtcCompiler(std::optional<std::string> library = std::nullopt);
  // With a table that is already there.
  explicit NvrtcCompiler(cuda::NvrtcApi api);

  Result<std::string> identity() override;
  Result<CompiledCubin> compile(const CompileRequest& request) override;

 private:
  Result<const cuda::NvrtcApi*> opened();

  const std::optional<std::string> library_;
  std::once_flag open_once_, identity_once_;
  std::optional<Result<cuda::NvrtcApi>> api_;
  std::optional<Result<std::string>> identity_;
};

// What ptxas -v says of one entry in a compiler log.
struct PtxasFacts {
  int registers = 0;
  int local_bytes = 0;
  int spill_bytes = 0;
};

// Empty if the log does not speak of the entry.
std::optional<PtxasFacts> read_ptxas_log(const std::string& log, const std::string& entry);

// The line of the log that makes a cubin unfit although it compiled: wgmma that ptxas serialised or
// a setmaxnreg that it ignored. Empty if there is none.
std::string find_ptxas_refusal(const std::string& log);

// "13.0.88" out of the header of a PTX text; empty if it is not there.
std::string read_ptx_version(const std::string& ptx);

}  // namespace chord::cubin
