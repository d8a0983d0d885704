// Importing: from folder to folder without a compile, again after an interruption, and never what
// was not asked for.
#include "cache/bundle/import.h"

#include <signal.h>
#include <sys/stat.h>

#include "tests/cache/bundle/bundle_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

class ImportTest : public BundleTest {
 protected:
  CacheSettings trusting() const {
    CacheSettings settings = this->settings();
    settings.signatures = trust();
    return settings;
  }
  Result<ImportReport> import_into(TieredCache& cache) {
    return import_bundle(bundle_path(), trust(), {}, sink_of(cache), files);
  }
  std::size_t stored_files() const {
    std::size_t count = 0;
    if (!std::filesystem::exists(layout().entries())) return 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(layout().entries()))
      count += item.is_regular_file() ? 1 : 0;
    return count;
  }
};

TEST_F(ImportTest, EveryKeyHitsAndNothingIsMade) {
  make_bundle(10, 20000);
  const auto report = import_into(*open(trusting()));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->imported, 10u);
  const auto cache = open(trusting());
  for (int i = 0; i < 10; ++i) {
    const auto entry = cache->get_or_make(key_of(i), maker(key_of(i)));
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ((*entry)->cubin, make_entry(key_of(i), 20000).cubin);
  }
  EXPECT_EQ(compiles, 0);
  EXPECT_EQ(cache->counters().disk_hits, 10u);
  EXPECT_TRUE(cache->verify().damaged.empty());
}

TEST_F(ImportTest, StoresTheExactBytes) {
  make_bundle(3);
  RecordingSink sink;
  ASSERT_TRUE(import_from(bundle_path(), sink).ok());
  ASSERT_EQ(sink.stored.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(sink.stored.at(key_of(i).name), source().get(key_of(i)).bytes);
}

TEST_F(ImportTest, ReportSaysWhatItIsAndWhoMadeIt) {
  make_bundle(3);
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->label, "kimi-k2.5 ep8 decode");
  EXPECT_EQ(report->compiler, "NVRTC 13.0.88");
  EXPECT_EQ(report->coverage, (Coverage{3, 3, "1:4096"}));
  EXPECT_EQ(report->signer, key().signer());
  EXPECT_EQ(report->signer_comment, "build box");
  EXPECT_EQ(report->entries, 3u);
  EXPECT_EQ(report->imported, 3u);
  EXPECT_GT(report->bytes, 3000u);
}

TEST_F(ImportTest, CheckAloneStoresNothing) {
  make_bundle(3);
  const auto report = check_bundle(bundle_path(), trust(), {}, files);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->entries, 3u);
  EXPECT_EQ(report->imported + report->skipped, 0u);
  EXPECT_EQ(stored_files(), 0u);
}

TEST_F(ImportTest, PinsTheManifestLast) {
  make_bundle(3);
  RecordingSink sink;
  std::vector<std::size_t> pins_at_store;
  sink.on_store = [&] { pins_at_store.push_back(sink.pins.size()); };
  ASSERT_TRUE(import_from(bundle_path(), sink).ok());
  EXPECT_EQ(pins_at_store, (std::vector<std::size_t>{0, 0, 0}));
  ASSERT_EQ(sink.pins.size(), 1u);
  EXPECT_EQ(sink.pins[0].keys.size(), 3u);
}

TEST_F(ImportTest, PinIsInTheFolderAndNamesTheCompiler) {
  make_bundle(2);
  ASSERT_TRUE(import_into(*open(trusting())).ok());
  EXPECT_EQ(pinned_manifests(layout(), files, log.sink()).size(), 1u);
  EXPECT_EQ(open(trusting())->compiler_identities(), std::vector<std::string>{"NVRTC 13.0.88"});
}

TEST_F(ImportTest, SecondImportSkipsAll) {
  make_bundle(4);
  ASSERT_TRUE(import_into(*open(trusting())).ok());
  const auto report = import_into(*open(trusting()));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->imported, 0u);
  EXPECT_EQ(report->skipped, 4u);
}

TEST_F(ImportTest, FailedOneGoesOnWhereItStopped) {
  make_bundle(6);
  RecordingSink sink;
  sink.capacity = 4;
  const auto failed = import_from(bundle_path(), sink);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("disk full"), std::string::npos);
  EXPECT_TRUE(sink.pins.empty());
  sink.capacity = 100;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->skipped, 4u);
  EXPECT_EQ(report->imported, 2u);
  EXPECT_EQ(sink.pins.size(), 1u);
}

TEST_F(ImportTest, KilledOneGoesOnWhereItStopped) {
  make_bundle(6);
  auto child = testing::ChildProcess::run([&] {
    const auto cache = open(trusting());
    ImportSink sink = sink_of(*cache);
    int left = 3;
    sink.store = [&](const CacheKey& key, std::string_view bytes) {
      if (left-- == 0) ::raise(SIGKILL);
      return cache->adopt(key, bytes);
    };
    return import_bundle(bundle_path(), trust(), {}, sink, files).ok() ? 0 : 1;
  });
  ASSERT_EQ(child.wait(), 128 + SIGKILL);
  EXPECT_EQ(stored_files(), 3u);
  EXPECT_FALSE(std::filesystem::exists(layout().pins()));
  const auto report = import_into(*open(trusting()));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->skipped, 3u);
  EXPECT_EQ(report->imported, 3u);
}

TEST_F(ImportTest, DamagedStoredEntryIsReplaced) {
  make_bundle(2);
  ASSERT_TRUE(import_into(*open(trusting())).ok());
  write_file(layout().entry(key_of(0).name), "damaged");
  const auto report = import_into(*open(trusting()));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->imported, 1u);
  EXPECT_NE(open(trusting())->find(key_of(0)), nullptr);
}

TEST_F(ImportTest, FullDiskIsAnErrorAndLeavesWholeEntriesOnly) {
  make_bundle(4);
  int writes = 0;
  files.fail_if([&](std::string_view call, const std::string&) {
    return call == "write_exclusive" && ++writes > 2 ? ENOSPC : 0;
  });
  const auto report = import_into(*open(trusting()));
  files.heal();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("No space left"), std::string::npos);
  EXPECT_EQ(stored_files(), 2u);
  EXPECT_TRUE(open(trusting())->verify().damaged.empty());
}

TEST_F(ImportTest, FolderThatIsTooSmallIsAnError) {
  make_bundle(8, 10000);
  CacheSettings small = trusting();
  small.max_files = 4;
  const auto report = import_into(*open(small));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("evicted"), std::string::npos)
      << report.error().message();
  EXPECT_FALSE(std::filesystem::exists(layout().pins()));
}

TEST_F(ImportTest, OtherArchitectureIsRefusedByName) {
  Entry other = make_entry(make_key("kernel", "sm_100a"));
  other.arch = "sm_100a";
  signatures_of(key()).sign(other);
  write(raw_members({signed_entry(key_of(0), key()), other}));
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink, {.architectures = {"sm_90a"}});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
  const std::string message = report.error().message();
  EXPECT_NE(message.find("entries/" + other.key.name), std::string::npos) << message;
  EXPECT_NE(message.find("for sm_100a, asked for: sm_90a"), std::string::npos) << message;
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(ImportTest, EveryAskedArchitectureIsTaken) {
  Entry other = make_entry(make_key("kernel", "sm_100a"));
  other.arch = "sm_100a";
  signatures_of(key()).sign(other);
  write(raw_members({signed_entry(key_of(0), key()), other}));
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink, {.architectures = {"sm_90a", "sm_100a"}});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(sink.stored.size(), 2u);
}

TEST_F(ImportTest, ReadsWhereNothingMayBeWritten) {
  make_bundle(3);
  ::chmod(bundle_path().c_str(), 0400);
  ::chmod((folder / "out").c_str(), 0500);
  RecordingSink sink;
  // Root may write all the same, hence the calls are looked at, too.
  files.fail_if([](std::string_view call, const std::string&) {
    return call == "open_reader" || call == "stream_read" ? 0 : EROFS;
  });
  const auto report = import_from(bundle_path(), sink);
  ::chmod((folder / "out").c_str(), 0700);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->imported, 3u);
}

TEST_F(ImportTest, ReadsThroughALink) {
  make_bundle(1);
  std::filesystem::create_symlink("kimi.chordpack", folder / "out/latest");
  RecordingSink sink;
  EXPECT_TRUE(import_from(folder / "out/latest", sink).ok());
}

TEST_F(ImportTest, WhatIsNoFileIsAnError) {
  RecordingSink sink;
  const auto missing = import_from(folder / "none", sink);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().message().find(folder / "none"), std::string::npos);
  EXPECT_FALSE(import_from(folder / "out", sink).ok());
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(import_from(folder / "pipe", sink).ok());
  EXPECT_FALSE(import_from("/dev/zero", sink).ok());
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(ImportTest, DiskThatFailsInTheMiddleIsAnIoError) {
  make_bundle(8, 100000);
  int reads = 0;
  files.fail_if([&](std::string_view call, const std::string&) {
    return call == "stream_read" && ++reads > 2 ? EIO : 0;
  });
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::io_error) << report.error().message();
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(ImportTest, FileThatIsExchangedBetweenTheReadingsIsNoticed) {
  make_bundle(3);
  const std::string other = folder / "out/other";
  ASSERT_TRUE(export_to(other, manifest_of(2)).ok());
  int opens = 0;
  files.fail_if([&](std::string_view call, const std::string&) {
    if (call == "open_reader" && ++opens == 2) std::filesystem::rename(other, bundle_path());
    return 0;
  });
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find("changed while it was imported"), std::string::npos);
  EXPECT_TRUE(sink.is_untouched());
}

TEST_F(ImportTest, EntryThatIsExchangedBetweenTheReadingsIsNotStored) {
  const auto good = raw_members(3);
  auto bad = good;
  bad[4].content[bad[4].content.size() / 2] ^= 1;
  write(good);
  int opens = 0;
  files.fail_if([&](std::string_view call, const std::string&) {
    if (call == "open_reader" && ++opens == 2) write(bad);
    return 0;
  });
  RecordingSink sink;
  const auto report = import_from(bundle_path(), sink);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message().find(bad[4].name + ": its SHA-256"), std::string::npos);
  EXPECT_EQ(sink.stored.size(), 2u);
  for (const auto& [name, bytes] : sink.stored) EXPECT_NE("entries/" + name, bad[4].name);
  EXPECT_TRUE(sink.pins.empty());
}

}  // namespace
}  // namespace chord::cache
