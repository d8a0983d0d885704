// chord-cache pin, unpin and pins: what the pruner must keep.
#include "cache/pins.h"

#include <fmt/format.h>

#include <utility>

#include "cache/key.h"
#include "cache/manifest.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using cache::Manifest;
using cache::Pin;

Json json_of(const Pin& pin) {
  return Json{{"label", pin.label},
              {"keys", pin.keys},
              {"present", pin.present},
              {"bytes", pin.bytes_present},
              {"path", pin.path}};
}

Result<Manifest> read_manifest(const std::string& path) {
  const char* help = "name a manifest that chord-prewarm wrote, or at least 6 digits of a key";
  std::string text;
  if (const FileError error = files().read(path, text))
    return bad_flags(fmt::format("pin {}", path), error.message(), help);
  Result<Manifest> manifest = cache::parse_manifest(text, path);
  if (!manifest) manifest.error().code = ErrorCode::invalid_argument;  // the caller's file
  return manifest;
}

Result<std::string> pin_key(const Folder& folder, const std::string& prefix) {
  CHORD_TRY(const std::string name, folder.inspector.resolve_prefix(prefix));
  CHORD_TRY(const cache::InspectedEntry found, folder.inspector.read(name));
  if (!found.entry)
    return Error{ErrorCode::corrupt, fmt::format("pin cache entry {}", name),
                 found.summary.problem_text, "chord-cache verify lists all that are so"};
  const cache::ManifestKey key{name,
                               {},
                               found.entry->arch,
                               cache::content_name(found.entry->cubin),
                               found.entry->cubin.size()};
  return cache::pin_key(folder.layout(), key, found.entry->compiler, files(), clock());
}

Result<std::string> pin_manifest(const Folder& folder, const std::string& path) {
  CHORD_TRY(const Manifest manifest, read_manifest(path));
  return cache::pin_manifest(folder.layout(), manifest, files(), clock());
}

// What has just been pinned, as `pins` lists it.
Result<Pin> find_pin(const Folder& folder, const std::string& path) {
  std::vector<std::string> notes;
  for (Pin& pin : cache::list_pins(folder.layout(), files(), noting(notes)))
    if (pin.path == path) return std::move(pin);
  return Error{ErrorCode::io_error, fmt::format("pin {}", path), "it is not there any more", ""};
}

std::string line_of(const Pin& pin) {
  return one_line(fmt::format("{}: {} keys, {} of them in the cache, {}", pin.label, pin.keys,
                              pin.present, size_text(pin.bytes_present)));
}

Result<int> run_pin(const std::string& what, const Common& common) {
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::change));
  CHORD_TRY(const std::string path,
            cache::is_key_prefix(what) ? pin_key(folder, what) : pin_manifest(folder, what));
  CHORD_TRY(const Pin pin, find_pin(folder, path));
  if (common.json) return print_json(json_of(pin));
  return print_text("pinned " + line_of(pin) + "\n");
}

// The label or whole key of a pin that the user named by the first digits of its key; what is no
// such prefix is taken as it is. The entry itself may be gone.
Result<std::string> resolve_pin(const Folder& folder, const std::string& what) {
  if (!cache::is_key_prefix(what)) return what;
  std::vector<std::string> notes, names;
  for (const Pin& pin : cache::list_pins(folder.layout(), files(), noting(notes))) {
    if (pin.label == what) return what;
    const std::string file = pin.path.substr(pin.path.rfind('/') + 1);
    const std::string start = "key-" + what;
    if (file.starts_with(start)) names.push_back(file.substr(4, file.rfind('.') - 4));
  }
  if (names.size() > 1)
    return bad_flags(
        fmt::format("unpin {}", what),
        fmt::format("{} pinned keys start so: {}, {}", names.size(), names[0], names[1]),
        "give more digits");
  return names.empty() ? what : names.front();
}

Result<int> run_unpin(const std::string& what, const Common& common) {
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::change));
  CHORD_TRY(const std::string name, resolve_pin(folder, what));
  CHORD_TRY(cache::unpin(folder.layout(), name, files()));
  if (common.json) return print_json(Json{{"cache_dir", folder.layout().root}, {"unpinned", name}});
  return print_text("unpinned " + one_line(name) + "\n");
}

Result<int> run_pins(const Common& common) {
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::read));
  std::vector<std::string> notes;
  const std::vector<Pin> pins = cache::list_pins(folder.layout(), files(), noting(notes));
  if (common.json) {
    Json all = Json::array();
    for (const Pin& pin : pins) all.push_back(json_of(pin));
    return print_json(
        Json{{"cache_dir", folder.layout().root}, {"pins", std::move(all)}, {"notes", notes}});
  }
  std::string text;
  for (const Pin& pin : pins) text += line_of(pin) + "\n";
  for (const std::string& note : notes) text += "note: " + one_line(note) + "\n";
  return print_text(text + fmt::format("{} pins\n", pins.size()));
}

template <Result<int> (*run)(const std::string&, const Common&)>
Action take_name(CLI::App& app, const char* metavar, const char* help) {
  const auto name = std::make_shared<std::string>();
  app.add_option(metavar, *name, help)->required()->check(flag_text());
  return [name](const Common& common) { return run(*name, common); };
}

Action prepare_pin(CLI::App& app) {
  return take_name<run_pin>(app, "MANIFEST|KEY",
                            "a file of chord-prewarm, or the first digits of a key, at least 6");
}

Action prepare_unpin(CLI::App& app) {
  return take_name<run_unpin>(app, "LABEL|KEY",
                              "the label of a manifest, or the first digits of a pinned key");
}

Action prepare_pins(CLI::App&) { return run_pins; }

}  // namespace

const Command kPinCommand{"pin", "keep the entries of a manifest, or one entry, from the pruner",
                          "  chord-cache pin kimi.json\n"
                          "  chord-cache pin 3fa9c1",
                          prepare_pin};

const Command kUnpinCommand{"unpin", "take a pin back; the entries stay until they are pruned",
                            "  chord-cache unpin 'kimi-k2.5 ep8 decode'\n"
                            "  chord-cache unpin 3fa9c1",
                            prepare_unpin};

const Command kPinsCommand{"pins", "list the pins", "  chord-cache pins\n  chord-cache pins --json",
                           prepare_pins};

}  // namespace chord::tools
