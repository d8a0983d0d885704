// See export.h.
#include "cache/bundle/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/bundle/archive_writer.h"
#include "cache/bundle/bundle_manifest.h"
#include "cache/entry.h"
#include "cache/key.h"

namespace chord::cache {
namespace {

constexpr std::size_t kMostNamed = 8;  // missing keys in one message

class Exporter {
 public:
  Exporter(const EntrySource& source, const SigningKey& key, const ExportOptions& options,
           std::string path)
      : source_(source),
        options_(options),
        key_(key),
        signatures_(SignaturePolicy::accept_local, {}, key),
        path_(std::move(path)) {}

  // Fills the list of members, and the keys' facts, from the entries.
  Status collect(const Manifest& wanted);
  Status write(FileSystem& files);
  ExportReport take_report() { return std::move(report_); }

 private:
  struct Found {
    std::string bytes;
    Entry entry;
    std::string why_not;  // empty: there is an entry
    bool signed_here = false;
  };

  Error refuse(std::string found, std::string help) const {
    return Error{ErrorCode::invalid_argument, fmt::format("export bundle {}", path_),
                 std::move(found), std::move(help)};
  }
  // The entry as it goes into the bundle: signed.
  Result<Found> fetch(const std::string& name) const;
  std::string why_not_exported(const std::string& name, const Found& found) const;
  Status check_missing() const;
  void include(ManifestKey& key, const Found& found);

  const EntrySource& source_;
  const ExportOptions& options_;
  const SigningKey& key_;
  Signatures signatures_;
  std::string path_;
  BundleManifest bundle_;
  ExportReport report_;
};

Result<Exporter::Found> Exporter::fetch(const std::string& name) const {
  TierAnswer answer = source_(name);
  if (answer.lookup == Lookup::failed)
    return Error{ErrorCode::io_error, fmt::format("export bundle {}", path_),
                 fmt::format("cache entry {}: {}", name, answer.reason), ""};
  Found found;
  if (answer.lookup != Lookup::value) {
    found.why_not = std::move(answer.reason);
    return found;
  }
  Result<Entry> entry = parse_entry(answer.bytes);
  if (!entry) {
    found.why_not = entry.error().found;
    return found;
  }
  found.entry = std::move(entry).value();
  found.bytes = std::move(answer.bytes);
  if (found.entry.signature.empty() && options_.sign_unsigned) {
    signatures_.sign(found.entry);
    found.bytes = serialize(found.entry);
    found.signed_here = true;
  }
  return found;
}

std::string Exporter::why_not_exported(const std::string& name, const Found& found) const {
  const Entry& entry = found.entry;
  if (!found.why_not.empty()) return found.why_not;
  if (found.bytes.size() > BundleLimits::entry_bytes)
    return fmt::format("it has {} bytes, a bundle takes {}", found.bytes.size(),
                       BundleLimits::entry_bytes);
  if (entry.key.name != name) return fmt::format("it is of key {}", entry.key.name);
  if (const Status identity = check_identity(entry, entry.key); !identity)
    return identity.error().found;
  // Whom to trust is for the importer to say; here it is only asked whether the signature is right.
  TrustedKeys claimed;
  claimed.add(entry.signer, "");
  return Signatures(SignaturePolicy::required, claimed, std::nullopt).check(entry).text;
}

void Exporter::include(ManifestKey& key, const Found& found) {
  key.arch = found.entry.arch;
  key.cubin_xxh128 = content_name(found.entry.cubin);
  key.size = found.entry.cubin.size();
  bundle_.members.push_back({key.name, found.bytes.size(), sha256_hex(found.bytes)});
  report_.signers.insert(found.entry.signer);
  report_.signed_here += found.signed_here ? 1 : 0;
  ++report_.entries;
  report_.entry_bytes += found.bytes.size();
}

Status Exporter::collect(const Manifest& wanted) {
  bundle_.deployment = wanted;
  auto& keys = bundle_.deployment.keys;
  std::sort(keys.begin(), keys.end(),
            [](const ManifestKey& a, const ManifestKey& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      keys.begin(), keys.end(),
      [](const ManifestKey& a, const ManifestKey& b) { return a.name == b.name; });
  if (twice != keys.end())
    return refuse(fmt::format("the manifest lists key {} twice", twice->name),
                  "write it again with chord-prewarm");
  for (ManifestKey& key : keys) {
    CHORD_TRY(const Found found, fetch(key.name));
    std::string why_not = why_not_exported(key.name, found);
    if (why_not.empty()) {
      include(key, found);
      continue;
    }
    key.cubin_xxh128.clear();
    key.size = 0;
    report_.missing.push_back({key, std::move(why_not)});
  }
  bundle_.deployment.coverage.keys = keys.size();
  bundle_.deployment.coverage.present = bundle_.members.size();
  return check_missing();
}

Status Exporter::check_missing() const {
  const auto& missing = report_.missing;
  if (bundle_.members.empty() && missing.empty())
    return refuse("the manifest lists no keys", "prewarm the deployment first");
  if (missing.empty() || (options_.allow_partial && !bundle_.members.empty())) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
    names += fmt::format("{}{} ({}): {}", i == 0 ? "" : "; ", missing[i].key.name,
                         missing[i].key.label, missing[i].reason);
  if (missing.size() > kMostNamed) names += fmt::format("; {} more", missing.size() - kMostNamed);
  return refuse(fmt::format("{} of {} keys can not be exported: {}", missing.size(),
                            bundle_.deployment.keys.size(), names),
                "prewarm the deployment first, or allow a bundle of a part");
}

Status Exporter::write(FileSystem& files) {
  const std::string json = to_json(bundle_);
  if (const Result<BundleManifest> again = parse_bundle_manifest(json); !again)
    return refuse(again.error().found, "export fewer keys at once");
  CHORD_TRY(ArchiveWriter archive, ArchiveWriter::create(path_, files));
  CHORD_TRY(archive.add(kManifestMember, json));
  CHORD_TRY(archive.add(kSignatureMember, sign_manifest(json, key_)));
  for (const BundleMember& member : bundle_.members) {
    CHORD_TRY(const Found found, fetch(member.name));
    if (!found.why_not.empty() || sha256_hex(found.bytes) != member.sha256)
      return Error{ErrorCode::io_error, fmt::format("export bundle {}", path_),
                   fmt::format("cache entry {} changed meanwhile {}", member.name, found.why_not),
                   "export again"};
    CHORD_TRY(archive.add(member.path(), found.bytes));
  }
  CHORD_TRY(report_.file_bytes, archive.finish());
  return {};
}

}  // namespace

EntrySource entries_of(std::vector<DiskTier*> folders) {
  return [folders = std::move(folders)](const std::string& name) {
    TierAnswer best{Lookup::absent, {}, "there is no folder"};
    for (DiskTier* folder : folders) {
      TierAnswer answer = folder->get(CacheKey{{}, name});
      if (answer.lookup == Lookup::value) {
        const Result<Entry> entry = parse_entry(answer.bytes);
        if (entry && entry->key.name == name) return answer;
        answer = {Lookup::refused, {}, entry ? "it is of another key" : entry.error().found};
      }
      // The most telling reason: one that is there but not usable, before one that is not there.
      if (folder == folders.front() || answer.lookup != Lookup::absent) best = std::move(answer);
    }
    return best;
  };
}

Result<ExportReport> export_bundle(const Manifest& manifest, const EntrySource& source,
                                   const SigningKey& key, const std::string& path,
                                   const ExportOptions& options, FileSystem& files) {
  CHORD_TRY(ArchiveWriter::check_target(path, files));
  Exporter exporter(source, key, options, path);
  CHORD_TRY(exporter.collect(manifest));
  CHORD_TRY(exporter.write(files));
  return exporter.take_report();
}

}  // namespace chord::cache
