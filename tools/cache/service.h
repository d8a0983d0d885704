// The whole cache as an engine opens it, for the commands that need more than one folder: remote
// store, signatures, compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chord/options.h"
#include "chord/status.h"
#include "src/cubin/cubin_store.h"
#include "src/cubin/nvrtc_compiler.h"
#include "src/open_cache.h"
#include "tools/cache/command.h"
#include "tools/cli_remote.h"

namespace chord::tools {

struct Service {
  Options options;  // as resolved
  OpenedCache opened;
  std::unique_ptr<cubin::NvrtcCompiler> compiler;
  std::unique_ptr<cubin::CubinStore> store;  // compiles here, whatever CHORD_COMPILE says

  cache::TieredCache& cache() const { return *opened.cache; }
};

// `from_code` goes before flags of the command, and those before the environment.
Result<Service> open_service(const Common& common, const RemoteFlags& remote, Options from_code,
                             const LogSink& log);

}  // namespace chord::tools
