// Archives that somebody made to do harm, and files that broke: refused by name, within bounds.
#include <ctime>
#include <random>

#include "tests/cache/bundle/bundle_fixture.h"

namespace chord::cache {
namespace {

class HostileBundleTest : public BundleTest {
 protected:
  // A good bundle with one more member after the list.
  void write_with(const RawMember& member) {
    auto members = raw_members(2);
    members.insert(members.begin() + 3, member);
    write(members);
  }
};

TEST_F(HostileBundleTest, RefusesPathsThatLeadOut) {
  for (const char* name : {"../x", "entries/../../x", "entries/..", ".."}) {
    write_with({.name = name, .content = "x"});
    expect_refused(std::string(name) + ": a path that leads out");
  }
  write_with({.name = "/abs", .content = "x"});
  expect_refused("/abs: an absolute path");
}

TEST_F(HostileBundleTest, RefusesLinks) {
  const std::string name = raw_members(2)[3].name;
  auto members = raw_members(2);
  members[3] = {.name = name, .type = AE_IFLNK, .symlink = "/etc/passwd"};
  write(members);
  expect_refused(name + ": it is a symbolic link");
  members[3] = {.name = name, .hardlink = "manifest.json"};
  write(members);
  expect_refused(name + ": it is a hard link");
}

TEST_F(HostileBundleTest, RefusesDevicesPipesAndFolders) {
  const std::pair<unsigned, const char*> kinds[] = {
      {AE_IFCHR, "a device"}, {AE_IFBLK, "a device"}, {AE_IFIFO, "a pipe"}, {AE_IFDIR, "a folder"}};
  for (const auto& [type, kind] : kinds) {
    write_with({.name = "entries/x", .type = type});
    expect_refused(std::string(": it is ") + kind);
  }
}

TEST_F(HostileBundleTest, RefusesAListThatIsALink) {
  auto members = raw_members(1);
  members[0] = {.name = kManifestMember, .type = AE_IFLNK, .symlink = "elsewhere"};
  write(members);
  expect_refused("manifest.json: it is a symbolic link");
}

TEST_F(HostileBundleTest, RefusesAMemberThatIsNotListed) {
  write_with({.name = "entries/" + std::string(32, 'f'), .content = "x"});
  expect_refused("entries/" + std::string(32, 'f') + ": it is not in the manifest");
  auto members = raw_members(2);
  members.push_back({.name = "extra", .content = "x"});
  write(members);
  expect_refused("extra: it is not in the manifest");
}

TEST_F(HostileBundleTest, RefusesAMemberThatIsThereTwice) {
  auto members = raw_members(2);
  members.insert(members.begin() + 3, members[2]);
  write(members);
  expect_refused(members[2].name + ": it is there twice");
  members = raw_members(2);
  members.push_back(members[2]);
  write(members);
  expect_refused(members[2].name + ": it is there twice");
  members = raw_members(2);
  members.push_back(members[0]);
  write(members);
  expect_refused("manifest.json: it is there twice");
}

TEST_F(HostileBundleTest, RefusesAMissingMember) {
  auto members = raw_members(3);
  const std::string missing = members[3].name;
  members.erase(members.begin() + 3);
  write(members);
  expect_refused("it stands where " + missing + " has to be");
  members = raw_members(3);
  const std::string last = members.back().name;
  members.pop_back();
  write(members);
  expect_refused(last + ": it is missing");
  write({});
  expect_refused("manifest.json: it is missing");
}

TEST_F(HostileBundleTest, RefusesAnotherOrder) {
  auto members = raw_members(2);
  std::swap(members[2], members[3]);
  write(members);
  expect_refused("it stands where " + members[3].name);
  members = raw_members(2);
  std::swap(members[0], members[1]);
  write(members);
  expect_refused("manifest.sig: it stands where manifest.json has to be");
}

TEST_F(HostileBundleTest, RefusesAnotherSizeThanTheListSays) {
  auto members = raw_members(2);
  members[3].content += "x";
  write(members);
  expect_refused(members[3].name + ": it has ");
  members[3].content.resize(members[3].content.size() - 2);
  write(members);
  expect_refused(members[3].name + ": it has ");
}

TEST_F(HostileBundleTest, ShowsNoControlCharactersOfANameAndNotAllOfALongOne) {
  write_with({.name = "evil\x1b[2J\nname", .content = "x"});
  expect_refused("evil?[2J?name: it is not in the manifest");
  write_with({.name = std::string(90, 'a') + std::string(2000, 'b'), .content = "x"});
  expect_refused("abbbbbbbbbb...: it is not in the manifest");
}

// Refused by what it claims, before it is unpacked: a gigabyte takes longer than this.
TEST_F(HostileBundleTest, RefusesBombsWithoutUnpackingThem) {
  constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
  auto members = raw_members(1);
  members[0].zeros = kGigabyte;
  members[0].content.clear();
  write(members);
  ASSERT_LT(std::filesystem::file_size(bundle_path()), std::size_t{1} << 20);
  const std::clock_t start = std::clock();  // of the processor: a busy machine changes nothing
  expect_refused("manifest.json: it has 1073741824 bytes, at most");
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
}

TEST_F(HostileBundleTest, RefusesABombInThePlaceOfAnEntryOrSignature) {
  constexpr std::uint64_t kLarge = std::uint64_t{128} << 20;
  auto members = raw_members(1);
  members[2].zeros = kLarge;
  members[2].content.clear();
  write(members);
  expect_refused(members[2].name + ": it has 134217728 bytes, the manifest says");
  members = raw_members(1);
  members[1].zeros = kLarge;
  members[1].content.clear();
  write(members);
  expect_refused("manifest.sig: it has 134217728 bytes, at most");
}

TEST_F(HostileBundleTest, RefusesWhatIsNoArchive) {
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(100000, 'x'), std::string(100000, '\0')}) {
    write_file(bundle_path(), bytes);
    expect_refused("bundle " + bundle_path());
  }
}

TEST_F(HostileBundleTest, RefusesATarWithoutZstd) {
  write_raw(bundle_path(), raw_members(2), false);
  expect_refused("it is no zstd file");
}

TEST_F(HostileBundleTest, RefusesZstdOfSomethingElse) {
  struct archive* archive = archive_write_new();
  archive_write_add_filter_zstd(archive);
  archive_write_set_format_raw(archive);
  ASSERT_EQ(archive_write_open_filename(archive, bundle_path().c_str()), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(archive, entry);
  const std::string text(5000, 'x');
  archive_write_data(archive, text.data(), text.size());
  archive_entry_free(entry);
  archive_write_free(archive);
  expect_refused("it is no whole tar.zst");
}

TEST_F(HostileBundleTest, RefusesACutFileWhereverItIsCut) {
  make_bundle(5, 60000);
  const std::string whole = read_file(bundle_path());
  ASSERT_GT(whole.size(), 100000u);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 64; ++i) sizes.push_back(i * whole.size() / 64);
  for (std::size_t i = 1; i <= 16; ++i) sizes.push_back(whole.size() - i);
  for (std::size_t i = 1; i <= 16; ++i) sizes.push_back(i);
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    write_file(bundle_path(), std::string_view(whole).substr(0, size));
    expect_refused("");
  }
}

// A flip that changes nothing of the content may be taken (a hint for the decoder's memory, say):
// what counts is that no wrong byte is.
TEST_F(HostileBundleTest, TakesNoWrongByteOfAFlippedFile) {
  make_bundle(4, 5000);
  const std::string whole = read_file(bundle_path());
  RecordingSink good;
  ASSERT_TRUE(import_from(bundle_path(), good).ok());
  std::mt19937 random(20);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string flipped = whole;
    // The head of the file, where formats are chosen, gets its share.
    const std::size_t place = random() % (i % 4 == 0 ? 64 : whole.size());
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << random() % 8));
    write_file(bundle_path(), flipped);
    RecordingSink sink;
    const auto report = import_from(bundle_path(), sink);
    if (report.ok()) {
      EXPECT_EQ(sink.stored, good.stored) << "place " << place;
      continue;
    }
    ++refused;
    EXPECT_TRUE(sink.is_untouched()) << "place " << place;
  }
  EXPECT_GE(refused, 190);
}

}  // namespace
}  // namespace chord::cache
