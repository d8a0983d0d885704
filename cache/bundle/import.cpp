// See import.h.
#include "cache/bundle/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cache/bundle/bundle_reader.h"
#include "cache/entry.h"

namespace chord::cache {
namespace {

using ArchByName = std::map<std::string_view, std::string_view>;

ArchByName architectures_of(const Manifest& manifest) {
  ArchByName archs;
  for (const ManifestKey& key : manifest.keys) archs.emplace(key.name, key.arch);
  return archs;
}

// Before an entry is read: the list itself says what each is for.
Status check_architectures(const BundleReader& reader, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return {};
  const ArchByName archs = architectures_of(reader.manifest().deployment);
  for (const BundleMember& member : reader.manifest().members) {
    const std::string_view arch = archs.at(member.name);
    if (std::find(wanted.begin(), wanted.end(), arch) != wanted.end()) continue;
    Error error = reader.refuse(
        member.path(),
        fmt::format("it is for {}, asked for: {}", printable(arch), fmt::join(wanted, ", ")),
        "import the bundle of this architecture");
    error.code = ErrorCode::invalid_argument;
    return error;
  }
  return {};
}

// The entry of a member whose hash is right, if it is what its name and the list say.
Result<Entry> parse_member(const BundleReader& reader, const BundleMember& member,
                           std::string_view arch, std::string_view bytes) {
  Result<Entry> entry = parse_entry(bytes);
  if (!entry) return reader.refuse(member.path(), entry.error().found);
  if (entry->key.name != member.name)
    return reader.refuse(member.path(), fmt::format("it is of key {}", entry->key.name));
  if (const Status identity = check_identity(*entry, entry->key); !identity)
    return reader.refuse(member.path(), identity.error().found);
  if (entry->arch != arch)
    return reader.refuse(member.path(), fmt::format("it is for {}, the manifest says {}",
                                                    printable(entry->arch), printable(arch)));
  return entry;
}

ImportReport report_of(const BundleReader& reader, const TrustedKeys& trusted) {
  const Manifest& manifest = reader.manifest().deployment;
  ImportReport report;
  report.label = manifest.label;
  report.compiler = manifest.compiler;
  report.coverage = manifest.coverage;
  report.signer = reader.signer();
  report.signer_comment = trusted.all().at(reader.signer());
  report.manifest = manifest;
  for (const BundleMember& member : reader.manifest().members) {
    ++report.entries;
    report.bytes += member.size;
  }
  return report;
}

struct Checked {
  ImportReport report;
  std::string manifest_sha256;
};

// Every member as an entry whose hash, name and architecture are right.
using Visit = std::function<Status(const BundleMember&, const Entry&, std::string_view bytes)>;

Status for_each_entry(BundleReader& reader, const Visit& visit) {
  const ArchByName archs = architectures_of(reader.manifest().deployment);
  BundleMember member;
  std::string bytes;
  for (;;) {
    CHORD_TRY(const bool is_there, reader.next(member, bytes));
    if (!is_there) return {};
    CHORD_TRY(const Entry entry, parse_member(reader, member, archs.at(member.name), bytes));
    CHORD_TRY(visit(member, entry, bytes));
  }
}

Result<Checked> check_all(const std::string& path, const Signatures& signatures,
                          const ImportOptions& options, FileSystem& files) {
  CHORD_TRY(BundleReader reader, BundleReader::open(path, signatures.trusted(), files));
  CHORD_TRY(check_architectures(reader, options.architectures));
  const auto check = [&](const BundleMember& member, const Entry& entry,
                         std::string_view) -> Status {
    const Verdict verdict = signatures.check(entry);
    if (verdict.is_good() && options.seen) options.seen(entry);
    if (verdict.is_good()) return {};
    return reader.refuse(member.path(), verdict.text,
                         "trust the key of the entry's signer, or export with a trusted key");
  };
  CHORD_TRY(for_each_entry(reader, check));
  return Checked{report_of(reader, signatures.trusted()), reader.manifest_sha256()};
}

// Reads what has been checked once more, and only that: the list is compared here, the entries by
// their hashes in it.
Status read_again(const std::string& path, const Signatures& signatures, const Checked& checked,
                  FileSystem& files, const Visit& visit) {
  CHORD_TRY(BundleReader reader, BundleReader::open(path, signatures.trusted(), files));
  if (reader.manifest_sha256() != checked.manifest_sha256)
    return reader.refuse(kManifestMember, "it changed while it was imported", "import it again");
  return for_each_entry(reader, visit);
}

Status store_all(const std::string& path, const Signatures& signatures, Checked& checked,
                 const ImportSink& sink, FileSystem& files) {
  const auto store = [&](const BundleMember&, const Entry& entry,
                         std::string_view bytes) -> Status {
    if (sink.is_stored(entry.key)) {
      ++checked.report.skipped;
      return {};
    }
    CHORD_TRY(sink.store(entry.key, bytes));
    ++checked.report.imported;
    return {};
  };
  return read_again(path, signatures, checked, files, store);
}

// A folder whose limit is smaller than the bundle evicts the first entries for the last ones.
Status confirm_all(const std::string& path, const Signatures& signatures, const Checked& checked,
                   const ImportSink& sink, FileSystem& files) {
  const auto confirm = [&](const BundleMember& member, const Entry& entry,
                           std::string_view) -> Status {
    if (sink.is_stored(entry.key)) return {};
    return Error{ErrorCode::io_error, fmt::format("import bundle {}", path),
                 fmt::format("{} was evicted again by entries that came after it", member.path()),
                 fmt::format("raise the limits of the cache folder: the bundle has {} entries of "
                             "{} bytes in all",
                             checked.report.entries, checked.report.bytes)};
  };
  return read_again(path, signatures, checked, files, confirm);
}

}  // namespace

ImportSink sink_of(TieredCache& cache) {
  ImportSink sink;
  sink.is_stored = [&cache](const CacheKey& key) { return cache.is_stored(key); };
  sink.store = [&cache](const CacheKey& key, std::string_view bytes) {
    return cache.adopt(key, bytes);
  };
  sink.pin = [&cache](const Manifest& manifest) -> Status {
    const Result<std::string> pinned = cache.write_manifest(manifest);
    return pinned ? Status{} : Status{pinned.error()};
  };
  sink.evictions = [&cache] { return cache.counters().evictions; };
  return sink;
}

Result<ImportReport> check_bundle(const std::string& path, const Signatures& signatures,
                                  const ImportOptions& options, FileSystem& files) {
  CHORD_TRY(Checked checked, check_all(path, signatures, options, files));
  return std::move(checked.report);
}

Result<ImportReport> import_bundle(const std::string& path, const Signatures& signatures,
                                   const ImportOptions& options, const ImportSink& sink,
                                   FileSystem& files) {
  CHORD_TRY(Checked checked, check_all(path, signatures, options, files));
  const std::uint64_t evictions = sink.evictions ? sink.evictions() : 0;
  CHORD_TRY(store_all(path, signatures, checked, sink, files));
  if (sink.evictions && sink.evictions() != evictions)
    CHORD_TRY(confirm_all(path, signatures, checked, sink, files));
  CHORD_TRY(sink.pin(checked.report.manifest));
  return std::move(checked.report);
}

}  // namespace chord::cache
