// What TieredCache keeps and tells beside the entries themselves: compilers, manifests, the nearest
// entry of a miss, and the check of a whole folder.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/compilers.h"
#include "cache/publish.h"
#include "cache/tiered_cache.h"

namespace chord::cache {
namespace {

// A miss under CHORD_JIT=never is an error, and its message may take a moment, but not minutes.
constexpr std::size_t kMostComparedEntries = 2000;

// Calls visit(path) for every entry of a folder, until it answers false.
template <class Visit>
void for_each_entry(const Layout& layout, FileSystem& files, Visit visit) {
  std::vector<std::string> shards;
  std::vector<std::string> names;
  (void)files.list(layout.entries(), shards);
  for (const std::string& shard : shards) {
    const std::string folder = layout.entries() + "/" + shard;
    if (files.list(folder, names)) continue;
    for (const std::string& name : names)
      if (is_content_name(name) && !visit(folder + "/" + name)) return;
  }
}

void append_new(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
    list.push_back(text);
}

}  // namespace

Status TieredCache::prepare_writable() {
  if (writable_) return writable_->make_root();
  return Error{
      ErrorCode::not_found, "a writable cache folder",
      settings_.why_no_writable_dir.empty() ? "there is none" : settings_.why_no_writable_dir,
      "name one with CHORD_CACHE_DIR"};
}

std::vector<std::string> TieredCache::compiler_identities() {
  std::vector<RecordedCompiler> recorded;
  std::vector<std::string> pinned;
  const auto collect = [&](const DiskTier& tier, Trust trust) {
    if (const std::string why = tier.why_root_not_trusted(); !why.empty())
      return say(said_refused_, fmt::format("cache {}: {}", tier.name(), why));
    for (RecordedCompiler& compiler : recorded_compilers(tier.layout(), trust, files_))
      recorded.push_back(std::move(compiler));
    for (const Manifest& manifest : pinned_manifests(tier.layout(), files_, log_))
      pinned.push_back(manifest.compiler);
  };
  if (writable_) collect(*writable_, Trust::own);
  for (const auto& tier : readonly_) collect(*tier, Trust::own_and_root);
  std::stable_sort(recorded.begin(), recorded.end(),
                   [](const RecordedCompiler& a, const RecordedCompiler& b) {
                     return a.last_use_ns > b.last_use_ns;
                   });
  std::vector<std::string> identities;
  for (const RecordedCompiler& compiler : recorded) append_new(identities, compiler.identity);
  for (const std::string& identity : pinned) append_new(identities, identity);
  return identities;
}

void TieredCache::record_compiler(const std::string& identity) {
  if (!writable_) return;
  std::string problem;
  if (const Status root = writable_->make_root(); !root)
    problem = root.error().message();
  else if (const FileError error =
               cache::record_compiler(writable_->layout(), identity, files_, clock_))
    problem = error.message();
  if (problem.empty()) return;
  ++counts_.write_failures;
  say(said_write_failure_, fmt::format("the compiler is not recorded: {}", problem));
}

bool TieredCache::is_stored(const CacheKey& key) {
  const auto holds = [&key](CacheTier& tier) {
    const TierAnswer answer = tier.get(key);
    if (answer.lookup != Lookup::value) return false;
    const Result<Entry> entry = parse_entry(answer.bytes);
    return entry.ok() && check_identity(*entry, key).ok();
  };
  if (writable_ && holds(*writable_)) return true;
  return std::any_of(readonly_.begin(), readonly_.end(),
                     [&](const std::unique_ptr<DiskTier>& tier) { return holds(*tier); });
}

// A rename would replace a device or a link by the manifest, where the user meant to write to it.
Status TieredCache::check_manifest_path(const std::string& path) {
  FileStat stat;
  if (path.empty() || files_.stat(path, stat) || !stat.exists || stat.is_regular) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("write manifest {}", path),
               stat.is_directory ? "it is a folder" : "it is there and is no regular file",
               "name a file that is to be made or replaced"};
}

Result<std::string> TieredCache::write_manifest(const Manifest& manifest, const std::string& path) {
  const std::string json = to_json(manifest);
  const std::string asked = fmt::format("write manifest '{}'", manifest.label);
  CHORD_TRY(check_manifest_path(path));
  if (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    if (name.empty())
      return Error{ErrorCode::invalid_argument, asked, fmt::format("'{}' names a folder", path),
                   "name a file"};
    if (const FileError error =
            publish_file(files_, clock_, folder.empty() ? "/" : folder, name, json))
      return Error{ErrorCode::io_error, asked, error.message(), ""};
  }
  const Status root = prepare_writable();
  if (!root) return path.empty() ? Result<std::string>(root.error()) : Result<std::string>(path);
  const Layout& layout = writable_->layout();
  const std::string name = pin_name(manifest);
  if (const FileError error = publish_file(files_, clock_, layout.pins(), name, json))
    return Error{ErrorCode::io_error, asked, error.message(), ""};
  return path.empty() ? layout.pins() + "/" + name : path;
}

Result<Manifest> TieredCache::read_manifest(const std::string& path) {
  std::string json;
  if (const FileError error = files_.read(path, json))
    return Error{ErrorCode::not_found, fmt::format("manifest {}", path), error.message(),
                 "name a file that chord-prewarm wrote"};
  return parse_manifest(json, path);
}

std::optional<NearestEntry> TieredCache::nearest(const CacheKey& key) {
  std::optional<NearestEntry> best;
  std::size_t left = kMostComparedEntries;
  const auto compare = [&](const std::string& path) {
    std::string bytes;
    if (files_.read(path, bytes)) return true;
    const Result<Entry> entry = parse_entry(bytes);
    if (!entry || entry->key == key) return --left > 0;
    std::vector<std::string> labels = differing_fields(key.text, entry->key.text);
    if (!best || labels.size() < best->differing_fields.size())
      best = NearestEntry{entry->key.name, std::move(labels)};
    return --left > 0;
  };
  if (writable_) for_each_entry(writable_->layout(), files_, compare);
  for (std::size_t i = 0; left > 0 && i < readonly_.size(); ++i)
    for_each_entry(readonly_[i]->layout(), files_, compare);
  return best;
}

VerifyReport TieredCache::verify() {
  VerifyReport report;
  if (!writable_) return report;
  for_each_entry(writable_->layout(), files_, [&](const std::string& path) {
    std::string bytes;
    const FileError error = files_.read(path, bytes);
    const Result<Entry> entry = parse_entry(bytes);
    ++report.entries;
    report.bytes += bytes.size();
    if (error || !entry || !path.ends_with(entry->key.name)) report.damaged.push_back(path);
    return true;
  });
  return report;
}

PruneReport TieredCache::prune() { return pruner_ ? pruner_->prune(0) : PruneReport{}; }

}  // namespace chord::cache
