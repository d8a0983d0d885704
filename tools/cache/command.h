// A command of chord-cache: one row of the table in chord_cache.cpp and one file that defines it.
//
//   namespace { struct Flags { ... };
//   Result<int> run(const Flags& flags, const Common& common) { ... }
//   Action prepare(CLI::App& app) { ... adds the flags ... } }
//   const Command kListCommand{"ls", "list the entries", "  chord-cache ls", prepare};
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "chord/status.h"

namespace chord::tools {

// The flags of every command.
struct Common {
  std::string cache_dir;  // empty: as the library chooses
  bool json = false;
};

// What runs once the flags are read; the value is the exit code.
using Action = std::function<Result<int>(const Common& common)>;

struct Command {
  const char* name;
  const char* summary;
  const char* examples;  // for the end of --help, one a line
  Action (*prepare)(CLI::App& app);
};

extern const Command kListCommand;
extern const Command kShowCommand;
extern const Command kStatCommand;
extern const Command kVerifyCommand;
extern const Command kPruneCommand;
extern const Command kRemoveCommand;
extern const Command kPinCommand;
extern const Command kUnpinCommand;
extern const Command kPinsCommand;
extern const Command kKeygenCommand;
extern const Command kWhyCommand;
#if CHORD_HAS_BUNDLES
extern const Command kExportCommand;
extern const Command kImportCommand;
#endif
#if CHORD_HAS_REMOTE
extern const Command kServeCommand;
#endif

}  // namespace chord::tools
