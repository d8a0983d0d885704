// What an Engine holds: options, the cache and its door, the compiler, and what has been loaded.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cache/tiered_cache.h"
#include "chord/engine.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "src/cubin/cubin_store.h"
#include "src/cubin/nvrtc_compiler.h"
#include "src/cubin/recipe.h"
#include "src/cuda/device.h"
#include "src/open_cache.h"
#include "src/prepared_memo.h"

namespace chord {

struct [[gnu::visibility("hidden")]] Engine::State {  // the class around it is exported
  State(Options resolved, LogSink sink)
      : options(std::move(resolved)), log(std::move(sink)), compiler(options.nvrtc_library) {}

  using Modules = std::map<std::pair<cuda::ContextId, std::string>, PreparedMemo::Value>;

  Options options;
  LogSink log;
  base::PosixFileSystem files;
  base::SystemClock clock;
  OpenedCache opened;
  cubin::NvrtcCompiler compiler;
  std::unique_ptr<cubin::CubinStore> store;
  PreparedMemo memo;
  std::mutex modules_mutex;
  Modules modules;  // by context and key (no GEMM: label): one load however many ask

  Result<PreparedMemo::Value> load(const cubin::Recipe& recipe, const cubin::EntryPointer& entry);
  Result<PreparedMemo::Value> load_once(cuda::ContextId context, const cubin::Recipe& recipe);
};

}  // namespace chord
