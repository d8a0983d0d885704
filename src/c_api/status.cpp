// Version, names and texts of statuses, the last error.
#include "chord/version.h"
#include "src/c_api/call.h"

using namespace chord;

static_assert(CHORD_VERSION_MAJOR == kVersionMajor && CHORD_VERSION_MINOR == kVersionMinor &&
              CHORD_VERSION_PATCH == kVersionPatch);

int32_t chord_version(void) { return CHORD_VERSION; }
const char* chord_version_text(void) { return kVersionText; }
int32_t chord_abi_version(void) { return CHORD_ABI_VERSION; }

const char* chord_status_name(chord_status_t status) {
  const std::int32_t bits = c_api::raw(status);
  if (bits == CHORD_SUCCESS) return "success";
  if (bits == CHORD_ERROR_OUT_OF_MEMORY) return "out_of_memory";
  if (bits < CHORD_SUCCESS || bits > CHORD_ERROR_OUT_OF_MEMORY) return "unknown";
  // MirrorEveryErrorCodeByName of the tests holds the order.
  return name(static_cast<ErrorCode>(bits - 1));
}

const char* chord_status_text(chord_status_t status) {
  switch (c_api::raw(status)) {
    case CHORD_SUCCESS:
      return "done";
    case CHORD_ERROR_INVALID_ARGUMENT:
      return "an argument can not be right";
    case CHORD_ERROR_UNSUPPORTED:
      return "legal, but this library or device does not do it";
    case CHORD_ERROR_NOT_FOUND:
      return "a file, library, symbol or entry that was named is not there";
    case CHORD_ERROR_UNAVAILABLE:
      return "this machine has no GPU, no driver or no compiler";
    case CHORD_ERROR_COMPILE_FAILED:
      return "the compiler refused the source";
    case CHORD_ERROR_CACHE_MISS:
      return "compiling is forbidden and the cache lacks the kernel";
    case CHORD_ERROR_IO:
      return "the file system answered with an error";
    case CHORD_ERROR_CORRUPT:
      return "bytes are not what they claim to be";
    case CHORD_ERROR_DRIVER:
      return "a CUDA driver call failed";
    case CHORD_ERROR_NOT_PREPARED:
      return "the kernel was not prepared before its launch";
    case CHORD_ERROR_INTERNAL:
      return "a fault of the library";
    case CHORD_ERROR_OUT_OF_MEMORY:
      return "no host memory was left";
  }
  return "no status of this library";
}

const chord_error_t* chord_last_error(void) { return c_api::last_error(); }
