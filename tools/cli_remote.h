// The flag that names a remote store. Secrets never come by flag, where every user of the machine
// could read them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "chord/options.h"
#include "chord/status.h"

namespace chord::tools {

struct RemoteFlags {
  std::string url;
};

void add_remote_flag(CLI::App& app, RemoteFlags& flags);
// Refuses a URL with a password in it.
Status apply(const RemoteFlags& flags, Options& options);

}  // namespace chord::tools
