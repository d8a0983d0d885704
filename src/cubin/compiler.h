// What turns CUDA source into a cubin, as an interface: NVRTC implements it, tests replace it. Must
// not know schedules, keys or the cache.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "chord/descriptor.h"
#include "chord/status.h"

namespace chord::cubin {

struct CompileRequest {
  std::string name = {};    // of the source in messages: "indexed_4096x7168.cu"; no path
  std::string source = {};  // defines cuda::kEntryName
  Architecture arch = Architecture::sm_90a;
  std::vector<std::pair<std::string, std::string>> headers = {};  // include name, text
  std::vector<std::string> options = {};  // further ones, after compile_options(arch); no paths
};

struct CompiledCubin {
  std::string cubin;
  std::string log;  // what the compiler said
  double compile_ms = 0;
  std::string compiler;  // identity() of who made it
  int registers = 0;     // of the entry, as ptxas counted them
  int local_bytes = 0;   // stack frame of the entry, spills included
  int spill_bytes = 0;   // spill stores and loads
};

// Safe from several threads.
class CubinCompiler {
 public:
  virtual ~CubinCompiler() = default;

  // The full version, part of every key: "NVRTC 13.0.88".
  virtual Result<std::string> identity() = 0;
  virtual Result<CompiledCubin> compile(const CompileRequest& request) = 0;
};

// The options of every compile for an architecture. A pure function without paths: part of the key.
std::vector<std::string> compile_options(Architecture arch);

}  // namespace chord::cubin
