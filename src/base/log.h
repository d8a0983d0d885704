// The log of the library: a LogSink that drops what is below the level and hands the rest to the
// user's function or to standard error. Nothing else of the library knows which log library is
// used.
#pragma once

#include "chord/platform.h"

namespace chord::base {

// An empty `user` means standard error. A user's function that throws loses its message, no more.
LogSink make_log(LogLevel level, LogSink user);

}  // namespace chord::base
