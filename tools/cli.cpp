// Shared parts of the command line tools.
#include "tools/cli.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "chord/version.h"
#include "src/explain.h"

namespace chord::tools {
namespace {

// Messages of the parser repeat what was typed, and that may be a megabyte. Cuts no character of
// UTF-8 in two.
std::string clipped(std::string text) {
  constexpr std::size_t kMost = 400;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::not_found:
      return kBadInput;
    case ErrorCode::cache_miss:
      return kNotCovered;
    default:
      return kFailed;
  }
}

std::string help_footer(std::string_view examples) {
  return fmt::format(
      "Examples:\n{}\n\nExit codes:\n"
      "  0  done\n"
      "  1  something failed: a compile, a file, a device\n"
      "  2  a flag or an input is wrong; nothing was done\n"
      "  3  not covered: a cubin that was asked for is not in the cache\n",
      examples);
}

bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

std::optional<int> parse_flags(CLI::App& app, int argc, const char* const* argv) {
  app.set_version_flag("--version", std::string(kVersionText));
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success&) {
    const bool version = app["--version"]->count() > 0;
    return print_text(version ? std::string(kVersionText) + "\n" : app.help());
  } catch (const CLI::ParseError& error) {
    return report(Error{ErrorCode::invalid_argument, app.get_name() + " with these flags",
                        clipped(error.what()), fmt::format("see {} --help", app.get_name())},
                  wants_json(argc, argv));
  }
}

CLI::Validator flag_text() {
  return CLI::Validator(
      [](const std::string& value) -> std::string {
        if (value.empty()) return "is empty";
        if (value.rfind("--", 0) == 0) return fmt::format("the value is missing before {}", value);
        return "";
      },
      "", "flag_text");
}

CLI::Validator whole_number(std::int64_t first, std::int64_t last) {
  const auto check = [first, last](std::string& value) -> std::string {
    const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
    std::int64_t number = -1;
    if (digits) std::from_chars(value.data(), value.data() + value.size(), number);
    if (number < first || number > last)
      return fmt::format("'{}' is not a whole number in {}..{}", value, first, last);
    value = std::to_string(number);  // without leading zeros, which CLI11 would read as octal
    return "";
  };
  return CLI::Validator(check, fmt::format("{}..{}", first, last), "whole_number");
}

Error bad_flags(std::string asked, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, std::move(asked), std::move(found), std::move(help)};
}

std::string first_set(std::initializer_list<std::pair<const char*, bool>> flags) {
  for (const auto& [flag, is_set] : flags)
    if (is_set) return flag;
  return "";
}

int report(const Error& error, bool json) {
  const int code = exit_code_of(error);
  if (json) return print_json(json_of(error), code);
  fmt::print(stderr, "error: {}\nfound: {}\n", error.asked, error.found);
  if (!error.help.empty()) fmt::print(stderr, "help:  {}\n", error.help);
  return code;
}

int print_text(std::string_view text, int exit_code) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return exit_code;
  std::fputs("error: could not write to standard output\n", stderr);
  return exit_code == kOk ? kFailed : exit_code;
}

int print_json(const nlohmann::ordered_json& json, int exit_code) {
  return print_text(text_of(json) + "\n", exit_code);
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

int terminal_columns(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace chord::tools
