// What people are told of the entries of a cache folder, and that telling it changes nothing.
#include "cache/inspect.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/cache/inspect_fixture.h"

namespace chord::cache {
namespace {

namespace fs = std::filesystem;

TEST_F(InspectTest, TellsTheFactsOfAnEntry) {
  const CacheKey key = make_key("source");
  fill({key});
  const EntrySummary entry = only();
  EXPECT_TRUE(entry.is_good()) << entry.problem_text;
  EXPECT_EQ(entry.key, key.name);
  EXPECT_EQ(entry.path, path_of(key));
  EXPECT_EQ(entry.bytes, fs::file_size(path_of(key)));
  EXPECT_EQ(entry.arch, "sm_90a");
  EXPECT_EQ(entry.compiler, "NVRTC 13.0.88");
  EXPECT_EQ(entry.kernel_name, "chord_kernel");
  EXPECT_EQ(entry.compile_ms, 104.25);
  EXPECT_EQ(entry.signer, "");
}

TEST_F(InspectTest, TellsTheLastUse) {
  const CacheKey key = make_key("source");
  fill({key});
  const std::int64_t then = std::int64_t{1'700'000'000} * testing::FakeClock::kSecond;
  ASSERT_FALSE(real.touch(path_of(key), then));
  EXPECT_EQ(only().last_use_ns, then);
}

TEST_F(InspectTest, VisitsByNameAndStopsWhenTold) {
  std::vector<CacheKey> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(make_key(std::to_string(i)));
  fill(keys);
  const std::vector<EntrySummary> entries = all();
  EXPECT_EQ(entries.size(), keys.size());
  EXPECT_TRUE(
      std::is_sorted(entries.begin(), entries.end(),
                     [](const EntrySummary& a, const EntrySummary& b) { return a.key < b.key; }));
  int visits = 0;
  ASSERT_TRUE(
      inspector().for_each([&](const EntrySummary&, const Entry*) { return ++visits < 3; }).ok());
  EXPECT_EQ(visits, 3);
}

TEST_F(InspectTest, HandsTheWholeEntryToTheVisitor) {
  const CacheKey key = make_key("source");
  fill({key});
  ASSERT_TRUE(inspector()
                  .for_each([&](const EntrySummary&, const Entry* entry) {
                    EXPECT_NE(entry, nullptr);
                    if (entry != nullptr) {
                      EXPECT_EQ(entry->cubin, cubin_of(key));
                    }
                    return true;
                  })
                  .ok());
}

TEST_F(InspectTest, AMissingFolderIsNotMade) {
  const auto opened = Inspector::open(root(), files, clock);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(InspectTest, AFolderWithoutEntriesIsEmpty) {
  fs::create_directory(root());
  fs::permissions(root(), fs::perms::owner_all);
  EXPECT_TRUE(all().empty());
  const auto summary = inspector().summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->entries.files, 0u);
  EXPECT_FALSE(summary->oldest_use_ns.has_value());
}

TEST_F(InspectTest, RefusesAFolderThatOthersMayWrite) {
  fs::create_directory(root());
  fs::permissions(root(), fs::perms::all);
  const auto opened = Inspector::open(root(), files, clock);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(opened.error().found.find("others may write"), std::string::npos);
}

TEST_F(InspectTest, RefusesALinkAndAFile) {
  fs::create_directory(folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", root());
  EXPECT_NE(Inspector::open(root(), files, clock).error().found.find("symbolic link"),
            std::string::npos);
  put(folder / "file", "text");
  EXPECT_NE(Inspector::open(folder / "file", files, clock).error().found.find("not a folder"),
            std::string::npos);
}

TEST_F(InspectTest, ReadsAFolderOfRootAndRefusesAnotherUsers) {
  const CacheKey key = make_key("source");
  fill({key});
  const bool root_owns = ::geteuid() == 0;
  files.set_user(::geteuid() + 4711);
  const auto opened = Inspector::open(root(), files, clock);
  EXPECT_EQ(opened.ok(), root_owns);
  if (root_owns) {
    EXPECT_TRUE(only().is_good());
  }
  if (!root_owns) return;
  ASSERT_EQ(::lchown(root().c_str(), 4712, 4712), 0);
  EXPECT_NE(Inspector::open(root(), files, clock).error().found.find("belongs to user 4712"),
            std::string::npos);
}

TEST_F(InspectTest, ChangesNothing) {
  const CacheKey key = make_key("source");
  fill({key, make_key("other")});
  put(layout().lock(key.name), "pid 1 on node7\n");
  put(layout().shard(key.name) + "/.tmp-1", "half");
  const auto before = picture();
  (void)all();
  ASSERT_TRUE(inspector().read(key.name).ok());
  ASSERT_TRUE(inspector().resolve_prefix(key.name.substr(0, 6)).ok());
  ASSERT_TRUE(inspector().summary().ok());
  EXPECT_EQ(picture(), before);
  for (const char* call : {"touch", "try_lock", "overwrite", "remove"}) {
    files.fail(call, EROFS);
    EXPECT_TRUE(inspector().summary().ok()) << call;
  }
}

TEST_F(InspectTest, DamageIsAProblemWithItsReason) {
  const CacheKey key = make_key("source");
  fill({key});
  fs::resize_file(path_of(key), fs::file_size(path_of(key)) - 1);
  const EntrySummary entry = only();
  EXPECT_EQ(entry.problem, MissReason::damaged);
  EXPECT_NE(entry.problem_text, "");
  EXPECT_EQ(entry.arch, "");
  EXPECT_FALSE(inspector().read(key.name)->entry.has_value());
  EXPECT_TRUE(fs::exists(path_of(key))) << "a reader moved it";
}

TEST_F(InspectTest, EveryCutAndEveryFlippedBitIsDamage) {
  const CacheKey key = make_key("source");
  fill({key});
  const std::string whole = serialize(make_entry(key));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2}) {
    put(path_of(key), whole.substr(0, size));
    EXPECT_EQ(only().problem, MissReason::damaged) << size;
  }
  // The first bytes are the schema's: an entry of another version is told as such.
  for (std::size_t at = 40; at < whole.size(); at += 37) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    put(path_of(key), flipped);
    EXPECT_EQ(only().problem, MissReason::damaged) << at;
  }
}

TEST_F(InspectTest, AnEntryOfAnotherVersionIsNoDamage) {
  const CacheKey key = make_key("source");
  put(path_of(key), "chord cubin 1\n0123");
  fs::permissions(root(), fs::perms::owner_all);
  EXPECT_EQ(only().problem, MissReason::older_schema);
}

TEST_F(InspectTest, AnEntryUnderAnotherNameIsAnotherKeys) {
  const CacheKey key = make_key("source"), other = make_key("other");
  fill({key});
  put(path_of(other), serialize(make_entry(key)));
  fs::remove(path_of(key));
  const EntrySummary entry = only();
  EXPECT_EQ(entry.key, other.name);
  EXPECT_EQ(entry.problem, MissReason::other_key);
  EXPECT_NE(entry.problem_text.find(key.name), std::string::npos);
}

TEST_F(InspectTest, AnEntryInAnotherSubfolderIsNeverFound) {
  const CacheKey key = make_key("source");
  fill({key});
  put(layout().entries() + (key.name.starts_with("00") ? "/11/" : "/00/") + key.name,
      serialize(make_entry(key)));
  fs::remove(path_of(key));
  EXPECT_EQ(only().problem, MissReason::other_key);
}

TEST_F(InspectTest, ACubinOfAnotherArchitectureThanItsKeyIsTold) {
  const CacheKey key = make_key("source");
  fill({key});
  Entry entry = make_entry(key);
  entry.arch = "sm_100a";
  put(path_of(key), serialize(entry));
  EXPECT_EQ(only().problem, MissReason::other_key);
  EXPECT_NE(only().problem_text.find("sm_100a"), std::string::npos);
}

TEST_F(InspectTest, ALinkInAnEntrysPlaceIsNotTrusted) {
  const CacheKey key = make_key("source");
  fill({key});
  fs::rename(path_of(key), folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", path_of(key));
  EXPECT_EQ(only().problem, MissReason::untrusted);
}

TEST_F(InspectTest, AnEntryThatOthersMayWriteIsNotTrusted) {
  const CacheKey key = make_key("source");
  fill({key});
  fs::permissions(path_of(key), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(only().problem, MissReason::untrusted);
}

TEST_F(InspectTest, AFolderThatCanNotBeListedIsAnErrorInsteadOfEmpty) {
  fill({make_key("source")});
  files.fail("list", EACCES);
  const Status status =
      inspector().for_each([](const EntrySummary&, const Entry*) { return true; });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::io_error);
}

TEST_F(InspectTest, AnEntryThatVanishesMeanwhileIsLeftOut) {
  const CacheKey key = make_key("source");
  fill({key});
  files.fail("read", ENOENT);
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(inspector().read(key.name).error().code, ErrorCode::cache_miss);
}

TEST_F(InspectTest, APrefixNamesItsEntry) {
  const CacheKey key = make_key("source");
  fill({key, make_key("other")});
  for (const std::size_t digits : {6, 7, 31, 32}) {
    const auto name = inspector().resolve_prefix(key.name.substr(0, digits));
    ASSERT_TRUE(name.ok()) << name.error().message();
    EXPECT_EQ(*name, key.name);
  }
}

TEST_F(InspectTest, APrefixOfNothingIsAMiss) {
  fill({make_key("source")});
  const auto name = inspector().resolve_prefix(make_key("other").name.substr(0, 8));
  EXPECT_EQ(name.error().code, ErrorCode::cache_miss);
  EXPECT_EQ(inspector().read(make_key("other").name).error().code, ErrorCode::cache_miss);
}

TEST_F(InspectTest, AnAmbiguousPrefixListsTheCandidates) {
  const auto [one, two] = alike(6);
  fill({one, two});
  const auto name = inspector().resolve_prefix(one.name.substr(0, 6));
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(name.error().found.find(one.name), std::string::npos) << name.error().found;
  EXPECT_NE(name.error().found.find(two.name), std::string::npos) << name.error().found;
  EXPECT_EQ(*inspector().resolve_prefix(two.name), two.name) << "a whole name is never ambiguous";
}

TEST_F(InspectTest, WhatIsNoPrefixIsRefused) {
  fill({make_key("source")});
  for (const std::string text : {"", "abcde", "ABCDEF", "abcdeg", "../../etc", "abc/def"}) {
    EXPECT_EQ(inspector().resolve_prefix(text).error().code, ErrorCode::invalid_argument) << text;
    EXPECT_FALSE(is_key_prefix(text)) << text;
  }
  const std::string long_text(33, 'a');
  EXPECT_EQ(inspector().resolve_prefix(long_text).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace chord::cache
