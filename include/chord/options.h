// Options of an Engine: from code first, then CHORD_* environment (read once, when the Engine is
// created), then the default.
//
//   CHORD_CACHE_DIR             writable cache folder; else $XDG_CACHE_HOME/chord,
//                               else ~/.cache/chord
//   CHORD_CACHE_READONLY_DIRS   colon-separated read-only folders, looked at after it
//   CHORD_CACHE_MAX_BYTES       bounds of the writable folder; least recently used entries go first
//   CHORD_CACHE_MAX_FILES
//   CHORD_CACHE_MAX_AGE_DAYS    entries that nobody used for so long go, too; 0 (default): none
//   CHORD_REMOTE                URL of a store that a fleet shares (cache/README.md)
//   CHORD_REMOTE_WRITE          1: this node also writes there; default 0
//   CHORD_REMOTE_DEADLINE_MS    of one call to the store; default 1000
//   CHORD_REMOTE_PASSWORD       secrets, or files that hold one each
//   CHORD_REMOTE_PASSWORD_FILE
//   CHORD_REMOTE_TOKEN
//   CHORD_REMOTE_TOKEN_FILE
//   CHORD_SIGNATURES            accept-local (default) or required
//   CHORD_TRUSTED_KEYS          file of the public keys whose entries are believed
//   CHORD_SIGNING_KEY           file of the secret key that signs what this process makes
//   CHORD_NVRTC_LIBRARY         the NVRTC to open; looked at only when a compile is needed
//   CHORD_JIT                   allow (default), warn, never: what a cache miss means
//   CHORD_MANIFEST              file of chord-prewarm; what it lists and the cache lacks is said
//   when
//                               an Engine is created: an error under never, a warning under warn
//   CHORD_COMPILE               local (default) or farm: where a missing cubin is compiled
//   CHORD_FARM_DEADLINE_MS      how long the farm is waited for; default 60000
//   CHORD_LOG                   debug, info, warn (default), error, off
//   CHORD_W4A16_*               overrides, chord/overrides.h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chord/cache_events.h"
#include "chord/export.h"
#include "chord/overrides.h"
#include "chord/platform.h"
#include "chord/schedule.h"

namespace chord {

enum class JitPolicy { allow, warn, never };

CHORD_API const char* name(JitPolicy policy);
CHORD_API Result<JitPolicy> parse_jit_policy(std::string_view);

// Which entries are believed. Those that come from another machine must be signed by a trusted key
// under either policy.
enum class SignaturePolicy {
  accept_local,  // folders of this machine are trusted by owner and mode
  required,      // they must be signed, too
};

CHORD_API const char* name(SignaturePolicy policy);
CHORD_API Result<SignaturePolicy> parse_signature_policy(std::string_view);

// Where a missing cubin is compiled; CHORD_JIT=never forbids both.
enum class CompileAt {
  local,  // by the NVRTC of this machine
  farm,   // by a `chord-cache serve` of the remote store, else by the NVRTC of this machine
};

CHORD_API const char* name(CompileAt place);
CHORD_API Result<CompileAt> parse_compile_at(std::string_view);

struct Options {
  std::optional<std::string> cache_dir{};
  std::optional<std::vector<std::string>> readonly_cache_dirs{};
  std::optional<std::string> nvrtc_library{};
  std::optional<LogLevel> log_level{};
  std::optional<JitPolicy> jit{};
  std::optional<Overrides> overrides{};
  Policy policy = Policy::measured;

  // Bounds of the writable folder; 0 days: no bound by age.
  std::optional<std::uint64_t> max_cache_bytes{};  // default 2 GiB
  std::optional<std::uint64_t> max_cache_files{};  // default 20000
  std::optional<std::int64_t> max_cache_age_days{};

  std::optional<std::string> remote{};  // a URL; empty text: none, whatever the environment says
  std::optional<bool> remote_write{};
  std::optional<std::int64_t> remote_deadline_ms{};
  std::optional<std::string> remote_password{};
  std::optional<std::string> remote_token{};
  std::optional<SignaturePolicy> signatures{};
  std::optional<std::string> trusted_keys{};  // a file
  std::optional<std::string> signing_key{};   // a file
  std::optional<std::string> manifest{};      // a file
  std::optional<CompileAt> compile_at{};
  std::optional<std::int64_t> farm_deadline_ms{};

  LogSink log;                            // empty: standard error
  CacheEventSink on_cache_event;          // empty: nobody is told
  std::int64_t compile_wait_ms = 120000;  // for another process's compile of the same key
};

}  // namespace chord
