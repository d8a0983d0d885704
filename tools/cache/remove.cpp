// chord-cache rm: takes single entries out of the folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "cache/disk_tier.h"
#include "cache/pins.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

struct Flags {
  std::vector<std::string> keys;
  bool force = false;
};

struct Named {
  std::set<std::string> present;
  std::vector<std::string> missing;  // as they were given
};

Result<Named> resolve(const std::vector<std::string>& prefixes, const Folder& folder) {
  Named named;
  for (const std::string& prefix : prefixes) {
    Result<std::string> name = folder.inspector.resolve_prefix(prefix);
    if (name)
      named.present.insert(std::move(name).value());
    else if (name.error().code == ErrorCode::cache_miss)
      named.missing.push_back(prefix);
    else
      return std::move(name).error();
  }
  return named;
}

Status refuse_pinned(const Named& named, const Folder& folder) {
  std::vector<std::string> notes, pinned;
  const cache::PinnedNames pins = cache::pinned_names(folder.layout(), files(), noting(notes));
  for (const std::string& name : named.present)
    if (pins.names.contains(name)) pinned.push_back(name);
  const std::string asked = fmt::format("remove from cache folder {}", folder.layout().root);
  if (!pinned.empty())
    return bad_flags(asked, fmt::format("pinned: {}", fmt::join(pinned, ", ")),
                     "unpin first (chord-cache pins lists the pins), or give --force");
  if (!pins.unreadable.empty())
    return bad_flags(asked, fmt::format("pins can not be read: {}", pins.unreadable),
                     "try again, or give --force");
  return {};
}

std::string text_of(const Named& named) {
  std::string text;
  for (const std::string& name : named.present) text += fmt::format("removed {}\n", name);
  for (const std::string& prefix : named.missing) text += fmt::format("not there {}\n", prefix);
  return text;
}

Result<int> run(const Flags& flags, const Common& common) {
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::change));
  CHORD_TRY(const Named named, resolve(flags.keys, folder));
  if (!flags.force) CHORD_TRY(refuse_pinned(named, folder));
  cache::DiskTier tier(folder.layout().root, cache::Access::read_write, files(), clock());
  for (const std::string& name : named.present) CHORD_TRY(tier.remove(CacheKey{{}, name}));
  const int code = named.missing.empty() ? kOk : kNotCovered;
  if (!common.json) return print_text(text_of(named), code);
  return print_json(Json{{"cache_dir", folder.layout().root},
                         {"removed", named.present},
                         {"missing", named.missing}},
                    code);
}

Action prepare(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("KEY", flags->keys, "the first digits of keys, at least 6 of each")
      ->required()
      ->check(flag_text());
  app.add_flag("--force", flags->force, "also pinned ones");
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kRemoveCommand{"rm", "remove single entries; exit 3 when one was not there",
                             "  chord-cache rm 3fa9c1 77ab02\n"
                             "  chord-cache rm 3fa9c1 --force",
                             prepare};

}  // namespace chord::tools
