// The options that every compile for an architecture gets.
#include "src/cubin/compiler.h"

namespace chord::cubin {

std::vector<std::string> compile_options(Architecture arch) {
  return {
      std::string("--gpu-architecture=") + name(arch),
      "--std=c++20",
      // abi/ is compiled by the host compiler as well and so carries no attributes.
      "--device-as-default-execution-space",
      // Without it the working directory of the process is an include path.
      "--no-source-include",
      // Registers and spills of the entry come back in the log.
      "--ptxas-options=-v",
  };
}

}  // namespace chord::cubin
