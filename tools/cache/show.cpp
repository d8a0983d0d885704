// chord-cache show: all that is known of one entry, and its cubin or source as a file.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/key.h"
#include "cache/publish.h"
#include "src/cubin/recipe.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using cache::Entry;
using cache::EntrySummary;

constexpr const char* kStandardOutput = "-";
constexpr std::size_t kLongestValue = 200;  // of a field that is shown

struct Flags {
  std::string key, cubin, source;
};

struct Shown {
  EntrySummary summary;
  Entry entry;
  std::string label;
  std::string signature;  // what its signature is worth
  std::int64_t now_ns = 0;
};

std::string signature_state(const Entry& entry, const Folder& folder) {
  if (entry.signer.empty()) return "not signed";
  if (!cache::is_signature_of(entry.signer, entry.signature, cache::signed_text(entry)) ||
      cache::sha256_hex(entry.cubin) != entry.cubin_sha256)
    return "wrong";
  if (!folder.options.trusted_keys) return "right; no trusted keys are named";
  const auto trusted = cache::TrustedKeys::read(*folder.options.trusted_keys, files());
  if (!trusted) return "right; the file of trusted keys can not be read";
  return trusted->knows(entry.signer) ? "right, of a trusted key" : "right, of an unknown key";
}

Json fields_of(const Entry& entry) {
  Json json = Json::object();
  const auto fields = cache::key_fields(entry.key.text);
  if (!fields) return json;
  for (const auto& [label, value] : *fields) {
    const bool is_long = value.size() > kLongestValue || value.find('\n') != value.npos;
    json[label] =
        is_long ? Json{{"bytes", value.size()}, {"xxh3", cache::content_name(value)}} : Json(value);
  }
  return json;
}

Json json_of(const Shown& shown) {
  const Entry& entry = shown.entry;
  Json json = tools::json_of(shown.summary, shown.now_ns);
  json["label"] = json_or_null(shown.label);
  json["path"] = shown.summary.path;
  json["checksum"] = "whole";
  json["signature"] = shown.signature;
  json["cubin_bytes"] = entry.cubin.size();
  json["cubin_sha256"] = cache::sha256_hex(entry.cubin);
  json["threads"] = entry.threads;
  json["shared_bytes"] = entry.shared_bytes;
  json["registers"] = entry.registers;
  json["local_bytes"] = entry.local_bytes;
  json["cluster"] = entry.cluster;
  json["fields"] = fields_of(entry);
  return json;
}

std::string text_of(const Shown& shown) {
  const Entry& entry = shown.entry;
  std::string key_lines = cubin::readable_key(entry.key);
  std::string text;
  for (std::size_t begin = 0; begin < key_lines.size();) {
    const std::size_t end = std::min(key_lines.find('\n', begin), key_lines.size());
    const bool is_long = end - begin > kLongestValue;
    text +=
        one_line(std::string_view(key_lines).substr(begin, std::min(end - begin, kLongestValue))) +
        (is_long ? "...\n" : "\n");
    begin = end + 1;
  }
  const auto line = [&text](const char* label, const std::string& value) {
    text += fmt::format("{:<10} {}\n", label, one_line(value));
  };
  line("file", shown.summary.path);
  line("last used", fmt::format("{} ({} ago)", utc_text(shown.summary.last_use_ns),
                                age_text(shown.summary.last_use_ns, shown.now_ns)));
  line("checksum", fmt::format("whole, {} bytes", shown.summary.bytes));
  line("kernel", fmt::format("{}, {}", entry.kernel_name, entry.arch));
  if (!shown.label.empty()) line("label", shown.label);
  line("cubin",
       fmt::format("{} bytes, sha256 {}", entry.cubin.size(), cache::sha256_hex(entry.cubin)));
  line("launch",
       fmt::format("{} threads, {} bytes shared, {} registers, {} bytes local, cluster {}",
                   entry.threads, entry.shared_bytes, entry.registers, entry.local_bytes,
                   entry.cluster));
  line("compiler", fmt::format("{}, {:.0f} ms", entry.compiler, entry.compile_ms));
  line("signature", entry.signer.empty() ? shown.signature
                                         : fmt::format("{}: {}", entry.signer, shown.signature));
  return text;
}

Result<std::string> source_of(const Entry& entry) {
  CHORD_TRY(cache::KeyFields fields, cache::key_fields(entry.key.text));
  for (auto& [label, value] : fields)
    if (label == "source") return std::move(value);
  return Error{ErrorCode::not_found, fmt::format("the source of cache entry {}", entry.key.name),
               "its key has no field of that name", ""};
}

// Whole or not at all. A rename would replace a device, a folder or a link by the file, where the
// user meant to write to it.
Status extract(const std::string& path, std::string_view bytes) {
  const std::string asked = fmt::format("write {}", path);
  FileStat stat;
  if (const FileError error = files().stat(path, stat))
    return bad_flags(asked, error.message(), "name a file that is to be made or replaced");
  if (stat.exists && !stat.is_regular)
    return bad_flags(asked, stat.is_directory ? "it is a folder" : "it is no regular file",
                     "name a file that is to be made or replaced, or - for standard output");
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, std::max(slash, std::size_t{1}));
  const std::string file = path.substr(slash == path.npos ? 0 : slash + 1);
  FileStat parent;
  if (file.empty() || files().stat(folder, parent) || !parent.exists)
    return bad_flags(asked, file.empty() ? "it names a folder" : folder + " does not exist",
                     "name a file of a folder that exists");
  if (const FileError error = cache::publish_file(files(), clock(), folder, file, bytes))
    return Error{ErrorCode::io_error, asked, error.message(), ""};
  return {};
}

Status check(const Flags& flags, const Common& common) {
  const bool cubin = flags.cubin == kStandardOutput, source = flags.source == kStandardOutput;
  if (cubin && source)
    return bad_flags("show an entry", "both --cubin - and --source -",
                     "only one of them can go to standard output");
  if ((cubin || source) && common.json)
    return bad_flags("show an entry", "--json beside a file on standard output",
                     "give one of them; or name a file");
  return {};
}

// The exit code if the file was all that was asked for.
Result<std::optional<int>> extract_files(const Flags& flags, const Entry& entry) {
  std::string source;
  if (!flags.source.empty()) {
    CHORD_TRY(source, source_of(entry));
  }
  if (!flags.cubin.empty() && flags.cubin != kStandardOutput)
    CHORD_TRY(extract(flags.cubin, entry.cubin));
  if (!flags.source.empty() && flags.source != kStandardOutput)
    CHORD_TRY(extract(flags.source, source));
  if (flags.cubin == kStandardOutput) return std::optional<int>(print_text(entry.cubin));
  if (flags.source == kStandardOutput) return std::optional<int>(print_text(source));
  return std::optional<int>();
}

Result<int> run(const Flags& flags, const Common& common) {
  CHORD_TRY(check(flags, common));
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::read));
  CHORD_TRY(const std::string key, folder.inspector.resolve_prefix(flags.key));
  CHORD_TRY(cache::InspectedEntry found, folder.inspector.read(key));
  if (!found.entry)
    return Error{ErrorCode::corrupt, fmt::format("cache entry {}", key), found.summary.problem_text,
                 "chord-cache verify lists all that are so"};
  CHORD_TRY(const std::optional<int> done, extract_files(flags, *found.entry));
  if (done) return *done;
  const auto labels = labels_of(folder);
  const auto label = labels.find(key);
  const std::string signature = signature_state(*found.entry, folder);
  const Shown shown{found.summary, std::move(*found.entry),
                    label == labels.end() ? std::string() : label->second, signature,
                    clock().now_ns()};
  return common.json ? print_json(json_of(shown)) : print_text(text_of(shown));
}

Action prepare(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("KEY", flags->key, "the first digits of a key, at least 6")
      ->required()
      ->check(flag_text());
  app.add_option("--cubin", flags->cubin, "also write the cubin there; - is standard output")
      ->type_name("FILE")
      ->check(flag_text());
  app.add_option("--source", flags->source, "also write the CUDA source there")
      ->type_name("FILE")
      ->check(flag_text());
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kShowCommand{"show", "all that is known of one entry",
                           "  chord-cache show 3fa9c1\n"
                           "  chord-cache show 3fa9c1 --cubin kernel.cubin --source kernel.cu\n"
                           "  chord-cache show 3fa9c1 --source - | less",
                           prepare};

}  // namespace chord::tools
