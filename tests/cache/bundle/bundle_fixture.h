// What tests of bundles need: a folder with signed entries, the bundle of it, a sink that
// remembers, and archives that no exporter would write.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cache/bundle/bundle_manifest.h"
#include "cache/bundle/export.h"
#include "cache/bundle/import.h"
#include "tests/cache/cache_fixture.h"

namespace chord::cache {

// A member as a hostile writer makes it.
struct RawMember {
  std::string name;
  std::string content = {};
  unsigned type = AE_IFREG;
  std::string symlink = {};
  std::string hardlink = {};
  std::uint64_t zeros = 0;  // instead of the content
};

// Without zstd if asked so.
inline void write_raw(const std::string& path, const std::vector<RawMember>& members,
                      bool compressed = true) {
  struct archive* archive = archive_write_new();
  if (compressed) {
    ASSERT_EQ(archive_write_add_filter_zstd(archive), ARCHIVE_OK);
  }
  ASSERT_EQ(archive_write_set_format_pax_restricted(archive), ARCHIVE_OK);
  ASSERT_EQ(archive_write_set_bytes_in_last_block(archive, 1), ARCHIVE_OK);
  ASSERT_EQ(archive_write_open_filename(archive, path.c_str()), ARCHIVE_OK);
  for (const RawMember& member : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_filetype(entry, member.type);
    archive_entry_set_perm(entry, 0644);
    if (!member.symlink.empty()) archive_entry_set_symlink(entry, member.symlink.c_str());
    if (!member.hardlink.empty()) archive_entry_set_hardlink(entry, member.hardlink.c_str());
    const std::uint64_t size = member.zeros > 0 ? member.zeros : member.content.size();
    archive_entry_set_size(entry, static_cast<la_int64_t>(size));
    ASSERT_EQ(archive_write_header(archive, entry), ARCHIVE_OK) << archive_error_string(archive);
    (void)archive_write_data(archive, member.content.data(), member.content.size());
    const std::string block(1 << 20, '\0');
    for (std::uint64_t left = member.zeros; left > 0; left -= std::min(left, block.size()))
      (void)archive_write_data(archive, block.data(), std::min(left, block.size()));
    archive_entry_free(entry);
  }
  ASSERT_EQ(archive_write_close(archive), ARCHIVE_OK);
  archive_write_free(archive);
}

class RecordingSink {
 public:
  ImportSink sink() {
    ImportSink sink;
    sink.is_stored = [this](const CacheKey& key) { return stored.contains(key.name); };
    sink.store = [this](const CacheKey& key, std::string_view bytes) -> Status {
      if (stored.size() >= capacity) return Error{ErrorCode::io_error, "store", "disk full", ""};
      stored[key.name] = bytes;
      if (on_store) on_store();
      return {};
    };
    sink.pin = [this](const Manifest& manifest) -> Status {
      pins.push_back(manifest);
      return {};
    };
    return sink;
  }
  bool is_untouched() const { return stored.empty() && pins.empty(); }

  std::map<std::string, std::string> stored;
  std::vector<Manifest> pins;
  std::size_t capacity = 1000;
  std::function<void()> on_store;
};

class BundleTest : public CacheTest {
 protected:
  BundleTest() { std::filesystem::create_directory(folder / "out"); }

  std::string bundle_path() const { return folder / "out/kimi.chordpack"; }
  const SigningKey& key() const { return signing_key; }
  Signatures trust(const SigningKey& signer) const {
    TrustedKeys trusted;
    trusted.add(signer.signer(), "build box");
    return Signatures(SignaturePolicy::accept_local, trusted, std::nullopt);
  }
  Signatures trust() const { return trust(signing_key); }

  static CacheKey key_of(int number) { return make_key("kernel " + std::to_string(number)); }
  static Manifest manifest_of(int count) {
    Manifest manifest{.label = "kimi-k2.5 ep8 decode", .compiler = "NVRTC 13.0.88"};
    manifest.coverage.rows = "1:4096";
    for (int i = 0; i < count; ++i)
      manifest.keys.push_back({key_of(i).name, "kernel " + std::to_string(i), "sm_90a", "", 0});
    return manifest;
  }

  // The folder of the machine that exports.
  DiskTier& source() { return source_; }
  void put(const Entry& entry) {
    const Status status = source_.put(entry.key, serialize(entry));
    ASSERT_TRUE(status.ok()) << status.error().message();
  }
  void fill_source(int count, std::size_t cubin_bytes = 1000) {
    for (int i = 0; i < count; ++i) put(signed_entry(key_of(i), signing_key, cubin_bytes));
  }
  Result<ExportReport> export_to(const std::string& path, const Manifest& manifest,
                                 const ExportOptions& options = {}) {
    return export_bundle(manifest, entries_of({&source_}), signing_key, path, options, files);
  }
  // A bundle of `count` entries at bundle_path().
  void make_bundle(int count, std::size_t cubin_bytes = 1000) {
    fill_source(count, cubin_bytes);
    const auto report = export_to(bundle_path(), manifest_of(count));
    ASSERT_TRUE(report.ok()) << report.error().message();
  }

  Result<ImportReport> import_from(const std::string& path, RecordingSink& sink,
                                   const ImportOptions& options = {}) {
    return import_bundle(path, trust(), options, sink.sink(), files);
  }
  // Imports the bundle, expects a refusal that says `part`, and nothing stored.
  void expect_refused(const std::string& part) {
    RecordingSink sink;
    const auto report = import_from(bundle_path(), sink);
    ASSERT_FALSE(report.ok()) << "imported, where '" << part << "' was expected";
    EXPECT_NE(report.error().message().find(part), std::string::npos) << report.error().message();
    EXPECT_TRUE(sink.is_untouched());
  }

  // The members of a good bundle of these entries, for a test to spoil.
  std::vector<RawMember> raw_members(std::vector<Entry> entries) const {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.key.name < b.key.name; });
    BundleManifest manifest{Manifest{.label = "raw"}, {}};
    std::vector<RawMember> members(2);
    for (const Entry& entry : entries) {
      const std::string bytes = serialize(entry);
      manifest.deployment.keys.push_back({entry.key.name, "raw", entry.arch, "", 0});
      manifest.members.push_back({entry.key.name, bytes.size(), sha256_hex(bytes)});
      members.push_back({.name = "entries/" + entry.key.name, .content = bytes});
    }
    sign(members, to_json(manifest));
    return members;
  }
  std::vector<RawMember> raw_members(int count) const {
    std::vector<Entry> entries;
    for (int i = 0; i < count; ++i) entries.push_back(signed_entry(key_of(i), signing_key));
    return raw_members(std::move(entries));
  }
  void sign(std::vector<RawMember>& members, const std::string& json) const {
    members[0] = {.name = kManifestMember, .content = json};
    members[1] = {.name = kSignatureMember, .content = sign_manifest(json, signing_key)};
  }
  void write(const std::vector<RawMember>& members) { write_raw(bundle_path(), members); }

  std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    EXPECT_FALSE(real.list(path, names));
    return names;
  }
  static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write_file(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  DiskTier source_{folder / "source", Access::read_write, files, clock};
};

}  // namespace chord::cache
