// chord-cache: looks into a cache folder, keeps it in order, and moves what is in it between
// machines. Needs no GPU, and no compiler but to serve other machines. The
// commands that only read write, stamp and lock nothing, and work on folders that they can not
// write.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/cache/command.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

constexpr const Command* kCommands[] = {
    &kListCommand,   &kShowCommand,   &kStatCommand,   &kVerifyCommand,
    &kPinsCommand,   &kPruneCommand,  &kRemoveCommand, &kPinCommand,
    &kUnpinCommand,  &kWhyCommand,    &kKeygenCommand,
#if CHORD_HAS_BUNDLES
    &kExportCommand, &kImportCommand,
#endif
#if CHORD_HAS_REMOTE
    &kServeCommand,
#endif
};

constexpr const char* kExamples =
    "  chord-cache ls --sort size\n"
    "  chord-cache stat --json --cache-dir /image/chord\n"
    "  chord-cache verify\n"
    "  chord-cache prune --max-bytes 2G --dry-run\n"
    "  chord-cache ls --help";

constexpr const char* kOfEveryCommand =
    "Of every command:\n"
    "  --cache-dir FOLDER          cache folder; default: as the library chooses\n"
    "  --json                      one JSON object on standard output";

struct Prepared {
  CLI::App* app;
  Action action;
};

std::vector<Prepared> add_commands(CLI::App& app, Common& common) {
  app.add_option("--cache-dir", common.cache_dir, "cache folder; default: as the library chooses")
      ->type_name("FOLDER")
      ->check(flag_text());
  app.add_flag("--json", common.json, "one JSON object on standard output");
  app.require_subcommand(0, 1);  // none is refused below: the parser would hide a wrong name
  app.footer(help_footer(kExamples));
  std::vector<Prepared> prepared;
  for (const Command* command : kCommands) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->fallthrough();
    sub->footer(std::string(kOfEveryCommand) + "\n\n" + help_footer(command->examples));
    prepared.push_back({sub, command->prepare(*sub)});
  }
  return prepared;
}

int run(const std::vector<Prepared>& commands, const Common& common) {
  const auto chosen = std::find_if(commands.begin(), commands.end(),
                                   [](const Prepared& command) { return command.app->parsed(); });
  if (chosen == commands.end())
    return report(bad_flags("chord-cache", "no command", "see chord-cache --help"), common.json);
  const Result<int> done = chosen->action(common);
  return done ? *done : report(done.error(), common.json);
}

}  // namespace
}  // namespace chord::tools

int main(int argc, char** argv) {
  using namespace chord::tools;
  CLI::App app{"Looks into a cubin cache and keeps it in order.", "chord-cache"};
  Common common;
  const auto commands = add_commands(app, common);
  if (const auto code = parse_flags(app, argc, argv)) return *code;
  return run(commands, common);
}
