// Exporting: the same bytes for the same entries, whole or not at all, and nothing left out
// silently.
#include "cache/bundle/export.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/cache/bundle/bundle_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

using ExportTest = BundleTest;

TEST_F(ExportTest, ReportsWhatItWrote) {
  fill_source(5);
  const auto report = export_to(bundle_path(), manifest_of(5));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->entries, 5u);
  EXPECT_GT(report->entry_bytes, 5u * 1000);
  EXPECT_EQ(report->file_bytes, std::filesystem::file_size(bundle_path()));
  EXPECT_EQ(report->signed_here, 0u);
  EXPECT_EQ(report->signers, std::set<std::string>{key().signer()});
}

TEST_F(ExportTest, SameEntriesGiveTheSameBytes) {
  make_bundle(7, 50000);
  const std::string first = read_file(bundle_path());
  // Another folder, time, order of files and of keys.
  DiskTier copy(folder / "copy", Access::read_write, files, clock);
  for (int i = 6; i >= 0; --i) ASSERT_TRUE(copy.put(key_of(i), source().get(key_of(i)).bytes).ok());
  clock.advance_s(100000);
  Manifest manifest = manifest_of(7);
  std::reverse(manifest.keys.begin(), manifest.keys.end());
  const std::string other = folder / "out/other.chordpack";
  ASSERT_TRUE(export_bundle(manifest, entries_of({&copy}), key(), other, {}, files).ok());
  EXPECT_EQ(read_file(other), first);
}

TEST_F(ExportTest, ReplacesAnOlderBundle) {
  write_file(bundle_path(), "older");
  make_bundle(2);
  EXPECT_NE(read_file(bundle_path()), "older");
  EXPECT_EQ(names_in(folder / "out"), std::vector<std::string>{"kimi.chordpack"});
}

TEST_F(ExportTest, MissingKeysAreNamed) {
  fill_source(2);
  const auto report = export_to(bundle_path(), manifest_of(4));
  ASSERT_FALSE(report.ok());
  const std::string message = report.error().message();
  EXPECT_NE(message.find("2 of 4 keys"), std::string::npos) << message;
  EXPECT_NE(message.find(key_of(2).name), std::string::npos) << message;
  EXPECT_NE(message.find("kernel 3"), std::string::npos) << message;
  EXPECT_TRUE(names_in(folder / "out").empty());
}

TEST_F(ExportTest, PartSaysSoInItsCoverage) {
  fill_source(2);
  const auto report = export_to(bundle_path(), manifest_of(4), {.allow_partial = true});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->entries, 2u);
  ASSERT_EQ(report->missing.size(), 2u);
  const auto checked = check_bundle(bundle_path(), trust(), {}, files);
  ASSERT_TRUE(checked.ok()) << checked.error().message();
  EXPECT_EQ(checked->coverage, (Coverage{4, 2, "1:4096"}));
  for (const ManifestKey& key : checked->manifest.keys) {
    const bool is_there = key.name == key_of(0).name || key.name == key_of(1).name;
    EXPECT_EQ(key.size, is_there ? 1000u : 0u);
    EXPECT_EQ(key.cubin_xxh128.empty(), !is_there);
  }
}

TEST_F(ExportTest, NothingAtAllIsAnErrorEvenInPart) {
  EXPECT_FALSE(export_to(bundle_path(), manifest_of(4), {.allow_partial = true}).ok());
  EXPECT_FALSE(export_to(bundle_path(), manifest_of(0)).ok());
  EXPECT_TRUE(names_in(folder / "out").empty());
}

TEST_F(ExportTest, KeyThatIsListedTwiceIsAnError) {
  fill_source(1);
  Manifest manifest = manifest_of(1);
  manifest.keys.push_back(manifest.keys.front());
  const auto report = export_to(bundle_path(), manifest);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find("twice"), std::string::npos);
}

TEST_F(ExportTest, LooksInEveryFolder) {
  fill_source(1);
  DiskTier second(folder / "second", Access::read_write, files, clock);
  const Entry other = signed_entry(key_of(1), key());
  ASSERT_TRUE(second.put(other.key, serialize(other)).ok());
  const auto source_of_both = entries_of({&source(), &second});
  const auto report =
      export_bundle(manifest_of(2), source_of_both, key(), bundle_path(), {}, files);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->entries, 2u);
}

TEST_F(ExportTest, DamagedEntryOfOneFolderIsTakenFromTheNext) {
  fill_source(1);
  DiskTier first(folder / "first", Access::read_write, files, clock);
  ASSERT_TRUE(first.put(key_of(0), "damaged").ok());
  const auto report = export_bundle(manifest_of(1), entries_of({&first, &source()}), key(),
                                    bundle_path(), {}, files);
  EXPECT_TRUE(report.ok()) << report.error().message();
}

TEST_F(ExportTest, DamagedEntryIsMissingWithItsReason) {
  ASSERT_TRUE(source().put(key_of(0), "damaged").ok());
  const auto report = export_to(bundle_path(), manifest_of(1));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find("not an entry"), std::string::npos)
      << report.error().message();
}

TEST_F(ExportTest, FolderThatCanNotBeReadIsAnErrorEvenInPart) {
  fill_source(2);
  files.fail_if([&](std::string_view call, const std::string& path) {
    return call == "read" && path.ends_with(key_of(1).name) ? EIO : 0;
  });
  const auto report = export_to(bundle_path(), manifest_of(2), {.allow_partial = true});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::io_error);
  EXPECT_NE(report.error().found.find(key_of(1).name), std::string::npos);
}

TEST_F(ExportTest, SignsWhatNobodySigned) {
  put(make_entry(key_of(0)));
  const auto report = export_to(bundle_path(), manifest_of(1));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->signed_here, 1u);
  RecordingSink sink;
  ASSERT_TRUE(import_from(bundle_path(), sink).ok());
  EXPECT_EQ(sink.stored.at(key_of(0).name), serialize(signed_entry(key_of(0), key())));
}

TEST_F(ExportTest, SignsNothingWhereItMayNot) {
  put(make_entry(key_of(0)));
  const auto report = export_to(bundle_path(), manifest_of(1), {.sign_unsigned = false});
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find("not signed"), std::string::npos);
}

TEST_F(ExportTest, KeepsTheSignatureOfAnother) {
  const SigningKey farm = SigningKey::generate();
  put(signed_entry(key_of(0), farm));
  const auto report = export_to(bundle_path(), manifest_of(1));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->signers, std::set<std::string>{farm.signer()});
}

TEST_F(ExportTest, WrongSignatureIsNotExported) {
  Entry entry = signed_entry(key_of(0), key());
  entry.signature = signed_entry(key_of(1), key()).signature;
  put(entry);
  const auto report = export_to(bundle_path(), manifest_of(1));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find("signature"), std::string::npos) << report.error().found;
}

TEST_F(ExportTest, RefusesATargetThatIsNoFile) {
  fill_source(1);
  const std::string target = folder / "out/target";
  const auto refused = [&](const std::string& path, const char* part) {
    const auto report = export_to(path, manifest_of(1));
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(report.error().found.find(part), std::string::npos) << report.error().message();
  };
  refused(folder / "out", "folder");
  refused("", "no name");
  refused(folder / "out/", "no name");
  refused("/dev/null", "no regular file");
  write_file(target, "mine");
  std::filesystem::create_symlink(target, folder / "out/link");
  refused(folder / "out/link", "symbolic link");
  EXPECT_EQ(read_file(target), "mine");
  ASSERT_EQ(::mkfifo((folder / "out/pipe").c_str(), 0600), 0);
  refused(folder / "out/pipe", "no regular file");
}

TEST_F(ExportTest, FolderOfTheTargetMustExist) {
  fill_source(1);
  const auto report = export_to(folder / "none/kimi.chordpack", manifest_of(1));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find("No such file"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_F(ExportTest, FailureOfAnyCallLeavesTheOldBundleAndNothingElse) {
  fill_source(4, 100000);
  for (const char* call : {"create_exclusive", "stream_write", "stream_finish", "rename"}) {
    write_file(bundle_path(), "older");
    files.fail(call, ENOSPC);
    const auto report = export_to(bundle_path(), manifest_of(4));
    files.heal();
    ASSERT_FALSE(report.ok()) << call;
    EXPECT_EQ(report.error().code, ErrorCode::io_error);
    EXPECT_NE(report.error().found.find("No space left"), std::string::npos)
        << report.error().message();
    EXPECT_EQ(read_file(bundle_path()), "older") << call;
    EXPECT_EQ(names_in(folder / "out").size(), 1u) << call;
  }
}

TEST_F(ExportTest, DiskThatFillsInTheMiddleLeavesNothing) {
  fill_source(8, 100000);
  for (int good = 0; good < 4; ++good) {
    int writes = 0;
    files.fail_if([&](std::string_view call, const std::string&) {
      return call == "stream_write" && writes++ >= good ? ENOSPC : 0;
    });
    EXPECT_FALSE(export_to(bundle_path(), manifest_of(8)).ok());
    EXPECT_GT(writes, good);
    EXPECT_TRUE(names_in(folder / "out").empty());
  }
}

TEST_F(ExportTest, RealFileLimitLeavesNothing) {
  fill_source(8, 100000);
  auto child = testing::ChildProcess::run([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const auto report = export_to(bundle_path(), manifest_of(8));
    return !report.ok() && report.error().code == ErrorCode::io_error ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(names_in(folder / "out").empty());
}

TEST_F(ExportTest, EntryThatChangesMeanwhileIsAnError) {
  fill_source(3);
  int calls = 0;
  const auto folders = entries_of({&source()});
  const auto report = export_bundle(
      manifest_of(3),
      [&](const std::string& name) {
        if (++calls > 3) put(signed_entry(key_of(1), key(), 2000));
        return folders(name);
      },
      key(), bundle_path(), {}, files);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().found.find(key_of(1).name + " changed"), std::string::npos)
      << report.error().message();
  EXPECT_TRUE(names_in(folder / "out").empty());
}

TEST_F(ExportTest, LeftoverOfAKilledExportIsInNobodysWay) {
  fill_source(1);
  int clashes = 0;
  files.fail("create_exclusive", EEXIST, 3);
  ASSERT_TRUE(export_to(bundle_path(), manifest_of(1)).ok());
  clashes = files.calls("create_exclusive");
  EXPECT_EQ(clashes, 4);
}

}  // namespace
}  // namespace chord::cache
