// What the tools share: exit codes, how errors and progress are shown, and flag parsing that ends
// in a value instead of an exit. Knows no tool and no flag of its own but --json.
//
// Streams: results go to standard output. An error is three lines on standard error, or with --json
// one object on standard output. On success standard error stays empty.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chord/status.h"

namespace chord::tools {

enum ExitCode { kOk = 0, kFailed = 1, kBadInput = 2, kNotCovered = 3 };

int exit_code_of(const Error& error);

// For the end of --help: one working example a line, then the exit codes.
std::string help_footer(std::string_view examples);

// True when --json stands anywhere: errors of the parser itself must know the form to take.
bool wants_json(int argc, const char* const* argv);

// Reads the flags. A value is an exit code to return at once (--help, --version or bad flags).
std::optional<int> parse_flags(CLI::App& app, int argc, const char* const* argv);

// A check for text flags: an empty value is a mistake of the caller's script, never "not given",
// and a value like "--json" is the next flag, swallowed because the value is missing.
CLI::Validator flag_text();

// Number flags, for Option::transform: decimal digits only, so that 010 is ten as everywhere else
// and 0x10, +5 or " 5" are refused.
CLI::Validator whole_number(std::int64_t first, std::int64_t last);

// Flags that do not go together, or do not fit what is there.
Error bad_flags(std::string asked, std::string found, std::string help);

// The first of the given flags that is set, by name; empty if none is.
std::string first_set(std::initializer_list<std::pair<const char*, bool>> flags);

// Shows the error and returns its exit code.
int report(const Error& error, bool json);

// Writes a result; a write that fails (closed pipe, full disk) turns success into kFailed.
int print_text(std::string_view text, int exit_code = kOk);
int print_json(const nlohmann::ordered_json& json, int exit_code = kOk);

bool is_terminal(std::FILE* stream);
int terminal_columns(std::FILE* stream);  // 80 when unknown

}  // namespace chord::tools
