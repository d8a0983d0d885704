// The thread's last error, and errors that name an argument.
#include "src/c_api/call.h"

#include <fmt/format.h>

#include <utility>

namespace chord::c_api {
namespace {

constexpr chord_error_t kNone{sizeof(chord_error_t), CHORD_SUCCESS, 0, "", "", "", ""};

// The view points into the texts, so both change together.
struct LastError {
  Error error;
  std::string message;
  chord_error_t view = kNone;
};

thread_local LastError last;

// Without a default: a new code is a warning of the compiler here.
constexpr chord_status_t status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return CHORD_ERROR_INVALID_ARGUMENT;
    case ErrorCode::unsupported:
      return CHORD_ERROR_UNSUPPORTED;
    case ErrorCode::not_found:
      return CHORD_ERROR_NOT_FOUND;
    case ErrorCode::unavailable:
      return CHORD_ERROR_UNAVAILABLE;
    case ErrorCode::compile_failed:
      return CHORD_ERROR_COMPILE_FAILED;
    case ErrorCode::cache_miss:
      return CHORD_ERROR_CACHE_MISS;
    case ErrorCode::io_error:
      return CHORD_ERROR_IO;
    case ErrorCode::corrupt:
      return CHORD_ERROR_CORRUPT;
    case ErrorCode::driver_error:
      return CHORD_ERROR_DRIVER;
    case ErrorCode::not_prepared:
      return CHORD_ERROR_NOT_PREPARED;
    case ErrorCode::internal:
      return CHORD_ERROR_INTERNAL;
  }
  return CHORD_ERROR_INTERNAL;
}

}  // namespace

Error Call::wrong(std::string_view argument, std::string_view found, std::string help) const {
  return Error{ErrorCode::invalid_argument, function_,
               fmt::format("argument `{}` {}", argument, found), std::move(help)};
}

Error Call::not_among(std::string_view argument, std::int32_t value, int first, int count) const {
  return wrong(argument, fmt::format("is {}", value),
               fmt::format("{} to {} are known", first, first + count - 1));
}

Status Call::copy_text(std::string_view text, char* to, std::size_t capacity,
                       std::size_t* needed) const {
  CHORD_TRY(need(needed, "needed"));
  *needed = text.size() + 1;
  if (to == nullptr && capacity == 0) return {};
  CHORD_TRY(need(to, "text"));
  if (capacity < text.size() + 1)
    return wrong("capacity", fmt::format("is {} bytes", capacity),
                 fmt::format("{} are needed", text.size() + 1));
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return {};
}

chord_status_t record(const Error& error) noexcept {
  try {
    Error copy = error;
    std::string message = error.message();
    last.error = std::move(copy);
    last.message = std::move(message);
    last.view = {.struct_size = sizeof(chord_error_t),
                 .status = status_of(error.code),
                 .reserved = 0,
                 .asked = last.error.asked.c_str(),
                 .found = last.error.found.c_str(),
                 .help = last.error.help.c_str(),
                 .message = last.message.c_str()};
    return last.view.status;
  } catch (...) {
    return record_out_of_memory("recording an error");
  }
}

chord_status_t record_exception(const char* function, const char* what) noexcept {
  try {
    return record(Error{ErrorCode::internal, function, fmt::format("an exception: {}", what),
                        "this is a fault of the library; please report it"});
  } catch (...) {
    return record_out_of_memory(function);
  }
}

chord_status_t record_out_of_memory(const char* function) noexcept {
  constexpr const char* kFound = "no host memory was left";
  last.view = {.struct_size = sizeof(chord_error_t),
               .status = CHORD_ERROR_OUT_OF_MEMORY,
               .reserved = 0,
               .asked = function,
               .found = kFound,
               .help = "",
               .message = kFound};
  return CHORD_ERROR_OUT_OF_MEMORY;
}

const chord_error_t* last_error() noexcept { return &last.view; }

}  // namespace chord::c_api
