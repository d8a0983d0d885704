// The file layer on a real file system, and its locks across fork and exec.
#include "src/base/posix_file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "src/base/system_clock.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_folder.h"

namespace chord::base {
namespace {

using testing::ChildProcess;

class PosixFiles : public ::testing::Test {
 protected:
  std::string read(const std::string& path) {
    std::string bytes;
    EXPECT_FALSE(files.read(path, bytes, nullptr));
    return bytes;
  }

  testing::TemporaryFolder folder;
  PosixFileSystem files;
};

TEST_F(PosixFiles, ReadsWhatWasWritten) {
  const std::string path = folder / "file";
  const std::string bytes("a\0b\n", 4);
  ASSERT_FALSE(files.write_exclusive(path, bytes));
  FileStat opened;
  std::string read_back = "something else";
  ASSERT_FALSE(files.read(path, read_back, &opened));
  EXPECT_EQ(read_back, bytes);
  EXPECT_EQ(opened.size, 4u);
  EXPECT_EQ(opened.mode, 0600u);
  EXPECT_EQ(opened.owner, files.user());
  EXPECT_TRUE(opened.is_regular);
}

TEST_F(PosixFiles, ExclusiveMeansExclusive) {
  ASSERT_FALSE(files.write_exclusive(folder / "file", "first"));
  EXPECT_EQ(files.write_exclusive(folder / "file", "second").error_number, EEXIST);
  EXPECT_EQ(read(folder / "file"), "first");
}

TEST_F(PosixFiles, FollowsNoSymbolicLink) {
  ASSERT_FALSE(files.write_exclusive(folder / "file", "secret"));
  std::filesystem::create_symlink(folder / "file", folder / "link");
  std::string bytes;
  EXPECT_EQ(files.read(folder / "link", bytes, nullptr).error_number, ELOOP);
  EXPECT_TRUE(files.write_exclusive(folder / "link", "x"));
  EXPECT_TRUE(files.overwrite(folder / "link", "x"));
  std::unique_ptr<FileLock> held;
  EXPECT_TRUE(files.try_lock(folder / "link", held));
  EXPECT_EQ(read(folder / "file"), "secret");
  FileStat stat;
  ASSERT_FALSE(files.stat(folder / "link", stat));
  EXPECT_TRUE(stat.is_symlink);
}

TEST_F(PosixFiles, OnlyRegularFilesAreRead) {
  std::string bytes;
  EXPECT_TRUE(files.read(folder.path(), bytes, nullptr));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(files.read(folder / "pipe", bytes, nullptr));
  EXPECT_EQ(files.read(folder / "none", bytes, nullptr).error_number, ENOENT);
}

TEST_F(PosixFiles, ErrorsNameCallAndPath) {
  const FileError error = files.rename(folder / "none", folder / "to");
  EXPECT_EQ(error.error_number, ENOENT);
  EXPECT_NE(error.message().find("rename " + (folder / "to")), std::string::npos);
}

TEST_F(PosixFiles, MakesFoldersForThisUserAndTakesExistingOnes) {
  ASSERT_FALSE(files.make_directories(folder / "a/b/c"));
  ASSERT_FALSE(files.make_directories(folder / "a/b/c/"));
  FileStat stat;
  ASSERT_FALSE(files.stat(folder / "a/b", stat));
  EXPECT_TRUE(stat.is_directory);
  EXPECT_EQ(stat.mode, 0700u);
  ASSERT_FALSE(files.write_exclusive(folder / "file", ""));
  EXPECT_EQ(files.make_directories(folder / "file").error_number, ENOTDIR);
  EXPECT_EQ(files.make_directories(folder / "file/below").error_number, ENOTDIR);
}

TEST_F(PosixFiles, StatOfNothingIsNoError) {
  FileStat stat{.exists = true};
  ASSERT_FALSE(files.stat(folder / "none", stat));
  EXPECT_FALSE(stat.exists);
}

TEST_F(PosixFiles, TouchSetsTheModificationTime) {
  ASSERT_FALSE(files.write_exclusive(folder / "file", ""));
  for (const std::int64_t time : {std::int64_t{946'684'800'000'000'001}, std::int64_t{0}}) {
    ASSERT_FALSE(files.touch(folder / "file", time));
    FileStat stat;
    ASSERT_FALSE(files.stat(folder / "file", stat));
    EXPECT_EQ(stat.modified_ns, time);
  }
}

TEST_F(PosixFiles, ListsRemovesAndSyncs) {
  ASSERT_FALSE(files.write_exclusive(folder / "b", ""));
  ASSERT_FALSE(files.make_directories(folder / "a"));
  std::vector<std::string> names;
  ASSERT_FALSE(files.list(folder.path(), names));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(files.sync_directory(folder.path()));
  EXPECT_FALSE(files.remove(folder / "a"));
  EXPECT_FALSE(files.remove(folder / "b"));
  EXPECT_EQ(files.remove(folder / "b").error_number, ENOENT);
  ASSERT_FALSE(files.list(folder.path(), names));
  EXPECT_TRUE(names.empty());
}

TEST_F(PosixFiles, ProcessLabelNamesThePid) {
  EXPECT_EQ(files.process_label().find("pid " + std::to_string(::getpid()) + " ("), 0u);
}

TEST_F(PosixFiles, ALockExcludesTheSameProcessToo) {
  std::unique_ptr<FileLock> first, second;
  ASSERT_FALSE(files.try_lock(folder / "lock", first));
  ASSERT_NE(first, nullptr);
  ASSERT_FALSE(files.try_lock(folder / "lock", second));
  EXPECT_EQ(second, nullptr);
  std::string record;
  EXPECT_FALSE(files.overwrite(folder / "lock", "owner"));  // drops no lock
  EXPECT_FALSE(files.read(folder / "lock", record, nullptr));
  ASSERT_FALSE(files.try_lock(folder / "lock", second));
  EXPECT_EQ(second, nullptr);
  first.reset();
  ASSERT_FALSE(files.try_lock(folder / "lock", second));
  EXPECT_NE(second, nullptr);
}

TEST_F(PosixFiles, ALockOfARemovedFileIsNotTaken) {
  std::unique_ptr<FileLock> first, second;
  ASSERT_FALSE(files.try_lock(folder / "lock", first));
  ASSERT_FALSE(files.remove(folder / "lock"));
  ASSERT_FALSE(files.try_lock(folder / "lock", second));
  EXPECT_NE(second, nullptr) << "the new file is another lock";
  EXPECT_TRUE(std::filesystem::exists(folder / "lock"));
}

TEST_F(PosixFiles, AForkedChildDoesNotKeepItsParentsLock) {
  int pids[2];
  ASSERT_EQ(::pipe(pids), 0);
  // The owner takes the lock, forks a child that lives on, and is killed.
  ChildProcess owner = ChildProcess::run([&] {
    std::unique_ptr<FileLock> held;
    if (files.try_lock(folder / "lock", held) || !held) return 1;
    if (::fork() == 0) {
      held.reset();  // must not touch what belongs to the parent
      const pid_t child = ::getpid();
      if (::write(pids[1], &child, sizeof child) != sizeof child) return 2;
    }
    ::pause();
    return 0;
  });
  pid_t grandchild = 0;
  ASSERT_EQ(::read(pids[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  std::unique_ptr<FileLock> held;
  ASSERT_FALSE(files.try_lock(folder / "lock", held));
  EXPECT_EQ(held, nullptr);
  owner.signal(SIGKILL);
  EXPECT_EQ(owner.wait(), 128 + SIGKILL);
  ASSERT_FALSE(files.try_lock(folder / "lock", held));
  EXPECT_NE(held, nullptr) << "the forked child holds the lock of its dead parent";
  ::kill(grandchild, SIGKILL);
  ::close(pids[0]);
  ::close(pids[1]);
}

TEST_F(PosixFiles, AStartedProgramSeesNoLockDescriptor) {
  std::unique_ptr<FileLock> held;
  ASSERT_FALSE(files.try_lock(folder / "chord-lock", held));
  const auto mentions_lock = [&](const std::string& listing) {
    return listing.find("chord-lock") != std::string::npos;
  };
  FILE* program = ::popen("ls -l /proc/self/fd", "r");
  ASSERT_NE(program, nullptr);
  std::string listing(1 << 16, '\0');
  listing.resize(std::fread(listing.data(), 1, listing.size(), program));
  ::pclose(program);
  ASSERT_NE(listing.find("pipe"), std::string::npos) << "the listing tells nothing: " << listing;
  EXPECT_FALSE(mentions_lock(listing)) << listing;
}

TEST(SystemClock, RunsForwardAndSleeps) {
  const SystemClock clock;
  const std::int64_t start = clock.steady_ns();
  clock.sleep_ms(5);
  EXPECT_GE(clock.steady_ns() - start, 5'000'000);
  EXPECT_GT(clock.now_ns(), std::int64_t{1'700'000'000} * 1'000'000'000);
}

}  // namespace
}  // namespace chord::base
