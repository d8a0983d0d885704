// Handles: from the options struct to an Engine, and what can be asked of it.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/c_api/convert.h"
#include "src/c_api/handles.h"
#include "src/cuda/device.h"

namespace chord::c_api {
namespace {

template <class Ours, class Theirs>
Status choose_option(const Call& call, const Theirs& value, std::string_view argument, int count,
                     std::optional<Ours>& option) {
  if (raw(value) == 0) return {};  // the environment's, or the default
  CHORD_TRY(option, call.choose<Ours>(value, argument, count, 1));
  return {};
}

template <class Value>
std::optional<Value> unless_zero(Value value) {
  if (value == 0) return std::nullopt;
  return value;
}

static_assert(static_cast<int>(LogLevel::debug) + 1 == CHORD_LOG_DEBUG);
static_assert(static_cast<int>(LogLevel::off) + 1 == CHORD_LOG_OFF);
static_assert(static_cast<int>(JitPolicy::never) + 1 == CHORD_JIT_NEVER);
static_assert(static_cast<int>(SignaturePolicy::required) + 1 == CHORD_SIGNATURES_REQUIRED);
static_assert(static_cast<int>(CompileAt::farm) + 1 == CHORD_COMPILE_FARM);
static_assert(static_cast<int>(Policy::published) == CHORD_POLICY_PUBLISHED);

Status choose_enums(const Call& call, const chord_options_t& c, Options& options) {
  CHORD_TRY(options.policy, call.choose<Policy>(c.policy, "options.policy", 2));
  CHORD_TRY(choose_option(call, c.jit, "options.jit", 3, options.jit));
  CHORD_TRY(choose_option(call, c.log_level, "options.log_level", 5, options.log_level));
  CHORD_TRY(choose_option(call, c.signatures, "options.signatures", 2, options.signatures));
  CHORD_TRY(choose_option(call, c.compile_at, "options.compile_at", 2, options.compile_at));
  if (raw(c.remote_write) != CHORD_CHOICE_DEFAULT) {
    CHORD_TRY(const int choice, call.choose<int>(c.remote_write, "options.remote_write", 2, 1));
    options.remote_write = choice + 1 == CHORD_CHOICE_YES;
  }
  return {};
}

Status copy_folders(const Call& call, const chord_options_t& c, Options& options) {
  if (c.readonly_cache_dirs == nullptr) {
    if (c.readonly_cache_dir_count == 0) return {};
    return call.need(nullptr, "options.readonly_cache_dirs");
  }
  std::vector<std::string> folders;
  for (std::size_t i = 0; i < c.readonly_cache_dir_count; ++i) {
    CHORD_TRY(
        call.need(c.readonly_cache_dirs[i], fmt::format("options.readonly_cache_dirs[{}]", i)));
    folders.emplace_back(c.readonly_cache_dirs[i]);
  }
  options.readonly_cache_dirs = std::move(folders);
  return {};
}

// The bound of the deadlines: far from where nanoseconds overflow.
constexpr std::int64_t kLongestWaitMs = 3'600'000;

Status copy_wait(const Call& call, const chord_options_t& c, Options& options) {
  if (c.compile_wait_ms < 0 || c.compile_wait_ms > kLongestWaitMs)
    return call.wrong("options.compile_wait_ms", fmt::format("is {}", c.compile_wait_ms),
                      fmt::format("1 to {}; 0: {}", kLongestWaitMs, Options().compile_wait_ms));
  if (c.compile_wait_ms != 0) options.compile_wait_ms = c.compile_wait_ms;
  return {};
}

void copy_bounds(const chord_options_t& c, Options& options) {
  options.max_cache_bytes = unless_zero(c.max_cache_bytes);
  options.max_cache_files = unless_zero(c.max_cache_files);
  options.max_cache_age_days = unless_zero(c.max_cache_age_days);
  if (c.max_cache_age_days < 0) options.max_cache_age_days = 0;
  options.remote_deadline_ms = unless_zero(c.remote_deadline_ms);
  options.farm_deadline_ms = unless_zero(c.farm_deadline_ms);
}

void copy_texts(const chord_options_t& c, Options& options) {
  options.cache_dir = text_of(c.cache_dir);
  options.nvrtc_library = text_of(c.nvrtc_library);
  options.remote = text_of(c.remote);
  options.remote_password = text_of(c.remote_password);
  options.remote_token = text_of(c.remote_token);
  options.trusted_keys = text_of(c.trusted_keys);
  options.signing_key = text_of(c.signing_key);
  options.manifest = text_of(c.manifest);
}

LogSink sink_of(chord_log_callback_t log, void* user) {
  if (log == nullptr) return {};
  return [log, user](LogLevel level, std::string_view message) {
    log(static_cast<chord_log_level_t>(static_cast<int>(level) + 1), std::string(message).c_str(),
        user);
  };
}

Result<Options> options_of(const Call& call, const chord_options_t& c) {
  Options options;
  if (c.device < -1)
    return call.wrong("options.device", fmt::format("is {}", c.device),
                      "-1 for no device, else the number of a GPU");
  CHORD_TRY(choose_enums(call, c, options));
  CHORD_TRY(copy_folders(call, c, options));
  CHORD_TRY(copy_wait(call, c, options));
  copy_bounds(c, options);
  copy_texts(c, options);
  options.log = sink_of(c.log, c.log_user);
  return options;
}

}  // namespace
}  // namespace chord::c_api

using namespace chord;
using c_api::Call;
using c_api::guarded;

chord_status_t chord_create(const chord_options_t* options, chord_handle_t* handle) {
  return guarded("chord_create", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    chord_options_t c = chord_options_init();
    if (options != nullptr) {
      CHORD_TRY(c, c_api::read_struct(call, options, "options"));
    }
    CHORD_TRY(Options from_code, c_api::options_of(call, c));
    CHORD_TRY(Engine engine, Engine::create(std::move(from_code)));
    *handle = new chord_handle{std::move(engine), c.device};
    return {};
  });
}

void chord_destroy(chord_handle_t handle) { delete handle; }

chord_status_t chord_cache_dir(chord_handle_t handle, char* text, size_t capacity, size_t* needed) {
  return guarded("chord_cache_dir", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    return call.copy_text(handle->engine.cache_dir(), text, capacity, needed);
  });
}

chord_status_t chord_device_query(chord_handle_t handle, chord_device_t* device) {
  return guarded("chord_device_query", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(const auto out, c_api::OutStruct<chord_device_t>::check(call, device, "device"));
    CHORD_TRY(cuda::require_device(handle->device));
    CHORD_TRY(const cuda::Device current, cuda::current_device());
    chord_device_t c = chord_device_init();
    c.ordinal = current.ordinal;
    c.arch = static_cast<chord_arch_t>(static_cast<int>(current.arch));
    c.num_sms = current.num_sms;
    c_api::copy_name(current.name, c.name);
    out.write(c);
    return {};
  });
}
