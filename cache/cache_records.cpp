// What TieredCache keeps beside the entries themselves: compilers, manifests, and its bounds.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/compilers.h"
#include "cache/pins.h"
#include "cache/publish.h"
#include "cache/tiered_cache.h"

namespace chord::cache {
namespace {

constexpr std::int64_t kRemoteCompilersLifeNs = std::int64_t{60} * 1'000'000'000;

// A file for others, as any program of the user writes it: whole or not at all, but not private.
FileError write_for_others(FileSystem& files, const Clock& clock, const std::string& path,
                           std::string_view bytes) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0)
    if (FileError error = files.make_directories(path.substr(0, slash))) return error;
  const std::string seed = fmt::format("{} {}", files.process_label(), clock.steady_ns());
  const std::string temporary = fmt::format("{}.{}", path, content_name(seed));
  std::unique_ptr<FileWriter> writer;
  if (FileError error = files.create_exclusive(temporary, writer)) return error;
  FileError error = writer->write(bytes);
  if (!error) error = writer->finish();
  if (!error) error = files.rename(temporary, path);
  if (error) (void)files.remove(temporary);
  return error;
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
  const LogSink say_once = [this](LogLevel, std::string_view message) {
    reporter_.say(Trouble::bad_pin, message);
  };
  const auto collect = [&](const DiskTier& tier, Trust trust) {
    if (const std::string why = tier.why_root_not_trusted(); !why.empty())
      return reporter_.say(Trouble::refused, fmt::format("cache {}: {}", tier.name(), why));
    for (RecordedCompiler& compiler : recorded_compilers(tier.layout(), trust, files_))
      recorded.push_back(std::move(compiler));
    for (const Manifest& manifest : pinned_manifests(tier.layout(), files_, say_once))
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
  const std::lock_guard lock(compilers_mutex_);
  for (const std::string& identity : learnt_compilers_) append_new(identities, identity);
  return identities;
}

void TieredCache::record_compiler(const std::string& identity) {
  record_compiler_in_remotes(identity);
  if (!writable_) return;
  std::string problem;
  if (const Status root = writable_->make_root(); !root)
    problem = root.error().message();
  else if (const FileError error =
               cache::record_compiler(writable_->layout(), identity, files_, clock_))
    problem = error.message();
  if (problem.empty()) return;
  ++reporter_.counts.write_failures;
  reporter_.say(Trouble::write_failure, fmt::format("the compiler is not recorded: {}", problem));
}

void TieredCache::learn_compiler(const std::string& identity) {
  const std::lock_guard lock(compilers_mutex_);
  append_new(learnt_compilers_, identity);
}

std::vector<std::string> TieredCache::remote_compiler_identities() {
  if (remotes_->empty()) return {};
  {
    const std::lock_guard lock(compilers_mutex_);
    if (clock_.steady_ns() < remote_compilers_until_ns_) return remote_compilers_;
  }
  // Threads that come before the first answer ask as well: none may take "not known yet" for none.
  std::vector<std::string> identities;
  std::string why_not;
  for (const auto& [signer, comment] : settings_.signatures.trusted().all())
    if (const SharedEntry record = remotes_->find(compilers_key(signer), Damage::leave, why_not))
      for (const std::string& identity : compilers_of(*record)) append_new(identities, identity);
  const std::lock_guard lock(compilers_mutex_);
  // A store that could not be asked is asked again as soon as its breaker lets us.
  if (!remotes_->can_be_asked()) return remote_compilers_;
  remote_compilers_ = std::move(identities);
  remote_compilers_until_ns_ = clock_.steady_ns() + kRemoteCompilersLifeNs;
  return remote_compilers_;
}

// Under its own signer's key, so that writers with different keys do not overwrite each other. Two
// writers of one key at once may lose one of two new identities; the next compile adds it again.
void TieredCache::record_compiler_in_remotes(const std::string& identity) {
  const SigningKey* key = settings_.signatures.signing_key();
  if (!remotes_->may_write() || key == nullptr) return;
  std::string why_not;
  const SharedEntry known = remotes_->find(compilers_key(key->signer()), Damage::leave, why_not);
  if (!known && !remotes_->can_be_asked()) return;
  std::vector<std::string> identities{identity};
  if (known) {
    const std::vector<std::string> others = compilers_of(*known);
    if (!others.empty() && others.front() == identity) return;
    for (const std::string& other : others) append_new(identities, other);
  }
  Entry record = compilers_record(key->signer(), identities);
  settings_.signatures.sign(record);
  remotes_->publish(record.key, serialize(record));
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
    if (const FileError error = write_for_others(files_, clock_, path, json))
      return Error{ErrorCode::io_error, asked, error.message(), ""};
  }
  const Status root = prepare_writable();
  if (!root) return path.empty() ? Result<std::string>(root.error()) : Result<std::string>(path);
  CHORD_TRY(std::string pin, pin_manifest(writable_->layout(), manifest, files_, clock_));
  return path.empty() ? std::move(pin) : path;
}

Result<Manifest> TieredCache::read_manifest(const std::string& path) {
  std::string json;
  if (const FileError error = files_.read(path, json))
    return Error{ErrorCode::not_found, fmt::format("manifest {}", path), error.message(),
                 "name a file that chord-prewarm wrote"};
  return parse_manifest(json, path);
}

PruneReport TieredCache::prune() { return pruner_ ? pruner_->prune(0) : PruneReport{}; }

}  // namespace chord::cache
