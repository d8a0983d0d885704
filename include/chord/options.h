// Options of an Engine: from code first, then CHORD_* environment (read once, when the Engine is
// created), then the default.
//
//   CHORD_CACHE_DIR            writable cache folder; else $XDG_CACHE_HOME/chord, else
//   ~/.cache/chord CHORD_CACHE_READONLY_DIRS  colon-separated read-only folders, looked at after
//   the writable one CHORD_NVRTC_LIBRARY        the NVRTC to open; looked at only when a compile is
//   needed CHORD_LOG                  debug, info, warn (default), error, off CHORD_JIT allow
//   (default), warn, never: what a cache miss means CHORD_W4A16_*              overrides,
//   chord/overrides.h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chord/overrides.h"
#include "chord/platform.h"
#include "chord/schedule.h"

namespace chord {

enum class JitPolicy { allow, warn, never };

const char* name(JitPolicy policy);
Result<JitPolicy> parse_jit_policy(std::string_view);

struct Options {
  std::optional<std::string> cache_dir{};
  std::optional<std::vector<std::string>> readonly_cache_dirs{};
  std::optional<std::string> nvrtc_library{};
  std::optional<LogLevel> log_level{};
  std::optional<JitPolicy> jit{};
  std::optional<Overrides> overrides{};
  Policy policy = Policy::measured;

  LogSink log;                                 // empty: standard error
  std::uint64_t max_cache_bytes = 2ull << 30;  // least recently used entries go first
  std::uint64_t max_cache_files = 20000;
  std::int64_t compile_wait_ms = 120000;  // for another process's compile of the same key
};

}  // namespace chord
