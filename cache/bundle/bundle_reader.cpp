// See bundle_reader.h.
#include "cache/bundle/bundle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace chord::cache {
namespace {

constexpr const char* kFetchAgain = "fetch or export it again";
constexpr std::size_t kMostOfAName = 100;  // of a member, in a message

bool leads_out(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (name.substr(0, end) == "..") return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

}  // namespace

BundleReader::BundleReader(std::string path, ArchiveReader archive)
    : path_(std::move(path)), archive_(std::move(archive)) {}

Result<BundleReader> BundleReader::open(const std::string& path, const TrustedKeys& trusted,
                                        FileSystem& files) {
  CHORD_TRY(ArchiveReader archive, ArchiveReader::open(path, files));
  BundleReader reader(path, std::move(archive));
  CHORD_TRY(reader.read_manifest(trusted));
  return reader;
}

Error BundleReader::refuse(const std::string& member, std::string reason, std::string help) const {
  return Error{ErrorCode::corrupt, fmt::format("bundle {}", path_),
               fmt::format("{}: {}", member, reason), std::move(help)};
}

Status BundleReader::read_manifest(const TrustedKeys& trusted) {
  CHORD_TRY(const std::string json, read_small(kManifestMember, BundleLimits::manifest_bytes));
  CHORD_TRY(const std::string signature,
            read_small(kSignatureMember, BundleLimits::signature_bytes));
  const auto in_bundle = [this](const Error& error) {
    return refuse(error.asked, error.found, error.help);
  };
  Result<std::string> signer = check_manifest(json, signature, trusted);
  if (!signer) return in_bundle(signer.error());
  Result<BundleManifest> manifest = parse_bundle_manifest(json);
  if (!manifest) return in_bundle(manifest.error());
  signer_ = std::move(signer).value();
  manifest_ = std::move(manifest).value();
  manifest_sha256_ = sha256_hex(json);
  return {};
}

std::string BundleReader::why_not_expected(const ArchiveMember& member,
                                           const std::string& expected) const {
  if (member.name.starts_with('/')) return "an absolute path is refused";
  if (leads_out(member.name)) return "a path that leads out of the bundle is refused";
  if (!member.why_no_file.empty())
    return fmt::format("it is {}, a bundle has files only", member.why_no_file);
  if (member.name == expected) return {};
  const auto& members = manifest_.members;
  const auto listed = std::find_if(members.begin(), members.end(), [&](const BundleMember& other) {
    return other.path() == member.name;
  });
  const bool is_head = member.name == kManifestMember || member.name == kSignatureMember;
  if (is_head ? !signer_.empty() : listed < members.begin() + static_cast<std::ptrdiff_t>(next_))
    return "it is there twice";
  if (listed == members.end() && !is_head && !signer_.empty()) return "it is not in the manifest";
  return fmt::format("it stands where {} has to be", expected);
}

Status BundleReader::expect(const std::string& name, ArchiveMember& member) {
  CHORD_TRY(const bool is_there, archive_.next(member));
  if (!is_there) return refuse(name, "it is missing", kFetchAgain);
  const std::string shown = member.name.empty() ? "a member without a name" : member.name;
  if (std::string why = why_not_expected(member, name); !why.empty())
    return refuse(printable(shown, kMostOfAName), std::move(why));
  return {};
}

Result<std::string> BundleReader::read_small(const std::string& name, std::uint64_t most_bytes) {
  ArchiveMember member;
  CHORD_TRY(expect(name, member));
  if (member.size > most_bytes)
    return refuse(name,
                  fmt::format("it has {} bytes, at most {} are read", member.size, most_bytes));
  std::string bytes;
  CHORD_TRY(archive_.read(member.size, bytes));
  return bytes;
}

Result<bool> BundleReader::next(BundleMember& member, std::string& bytes) {
  ArchiveMember found;
  if (next_ == manifest_.members.size()) {
    CHORD_TRY(const bool is_there, archive_.next(found));
    if (!is_there) return false;
    return refuse(printable(found.name, kMostOfAName), why_not_expected(found, "the end"));
  }
  member = manifest_.members[next_];
  CHORD_TRY(expect(member.path(), found));
  ++next_;
  if (found.size != member.size)
    return refuse(member.path(),
                  fmt::format("it has {} bytes, the manifest says {}", found.size, member.size));
  CHORD_TRY(archive_.read(member.size, bytes));
  if (sha256_hex(bytes) != member.sha256)
    return refuse(member.path(), "its SHA-256 is not the one of the manifest", kFetchAgain);
  return true;
}

}  // namespace chord::cache
