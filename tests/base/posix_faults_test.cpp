// The file layer on a kernel that interrupts, stutters and refuses: the error names call and path,
// nothing half-made stays, no descriptor leaks.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <tuple>

#include "src/base/posix_file_system.h"
#include "tests/support/fault_calls.h"
#include "tests/support/temporary_folder.h"

namespace chord::base {
namespace {

std::size_t open_descriptors() {
  // The iterator's own descriptor is among them, each time.
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

class PosixFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(files.write_exclusive(path, "old"));
    descriptors_ = open_descriptors();
  }
  void TearDown() override { EXPECT_EQ(open_descriptors(), descriptors_) << "a descriptor leaks"; }

  std::string content() {
    std::string bytes;
    PosixFileSystem real;
    EXPECT_FALSE(real.read(path, bytes, nullptr));
    return bytes;
  }
  void expect_error(const FileError& error, int number, const std::string& call,
                    const std::string& of) {
    EXPECT_EQ(error.error_number, number) << call;
    EXPECT_EQ(error.call, call);
    EXPECT_EQ(error.path, of);
    EXPECT_NE(error.message().find(call + " " + of), std::string::npos) << error.message();
  }

  testing::TemporaryFolder folder;
  testing::FaultCalls calls;
  PosixFileSystem files{calls};
  const std::string path = folder / "file";
  const std::string fresh = folder / "fresh";

 private:
  std::size_t descriptors_ = 0;
};

// One operation of the file layer, a system call that it makes, and the path that its error names.
struct Step {
  const char* name;
  const char* call;
  std::function<FileError(PosixFileSystem&, const std::string& folder)> run;
  const char* path = "/file";
};

FileError read_file(PosixFileSystem& files, const std::string& folder) {
  std::string bytes;
  const FileError error = files.read(folder + "/file", bytes, nullptr);
  EXPECT_EQ(bytes, error ? "" : "old");
  return error;
}
FileError write_new(PosixFileSystem& files, const std::string& folder) {
  return files.write_exclusive(folder + "/fresh", "new");
}
FileError overwrite(PosixFileSystem& files, const std::string& folder) {
  return files.overwrite(folder + "/file", "new");
}
FileError list_folder(PosixFileSystem& files, const std::string& folder) {
  std::vector<std::string> names;
  return files.list(folder, names);
}
FileError take_lock(PosixFileSystem& files, const std::string& folder) {
  std::unique_ptr<FileLock> held;
  const FileError error = files.try_lock(folder + "/lock", held);
  EXPECT_EQ(held == nullptr, static_cast<bool>(error));
  return error;
}
FileError rename_file(PosixFileSystem& files, const std::string& folder) {
  return files.rename(folder + "/file", folder + "/moved");
}
FileError remove_file(PosixFileSystem& files, const std::string& folder) {
  return files.remove(folder + "/file");
}
FileError make_folder(PosixFileSystem& files, const std::string& folder) {
  return files.make_directories(folder + "/made");
}
FileError stat_file(PosixFileSystem& files, const std::string& folder) {
  FileStat stat;
  return files.stat(folder + "/file", stat);
}
FileError touch_file(PosixFileSystem& files, const std::string& folder) {
  return files.touch(folder + "/file", 1);
}
FileError sync_folder(PosixFileSystem& files, const std::string& folder) {
  return files.sync_directory(folder);
}

const std::vector<Step>& steps() {
  static const std::vector<Step> all{{"read", "open", read_file},
                                     {"read", "fstat", read_file},
                                     {"read", "read", read_file},
                                     {"write", "open", write_new, "/fresh"},
                                     {"write", "write", write_new, "/fresh"},
                                     {"write", "fsync", write_new, "/fresh"},
                                     {"overwrite", "open", overwrite},
                                     {"overwrite", "write", overwrite},
                                     {"list", "open", list_folder, ""},
                                     {"sync", "open", sync_folder, ""},
                                     {"sync", "fsync", sync_folder, ""},
                                     {"lock", "open", take_lock, "/lock"},
                                     {"lock", "lock", take_lock, "/lock"},
                                     {"rename", "rename", rename_file, "/moved"},
                                     {"remove", "remove", remove_file},
                                     {"make", "mkdir", make_folder, "/made"},
                                     {"stat", "lstat", stat_file},
                                     {"touch", "utimensat", touch_file}};
  return all;
}

class EveryCall : public PosixFaults, public ::testing::WithParamInterface<Step> {
 protected:
  bool leaves_no_fresh_file() { return !std::filesystem::exists(fresh); }
};

TEST_P(EveryCall, ThatIsInterruptedIsMadeAgain) {
  const Step& step = GetParam();
  calls.fail(step.call, EINTR, 3);
  EXPECT_EQ(step.run(files, folder.path()).error_number, 0);
  EXPECT_GE(calls.count(step.call), 4);
}

TEST_P(EveryCall, ThatFailsIsNamedWithItsPath) {
  const Step& step = GetParam();
  for (const int number : {EIO, ENOSPC, EDQUOT, EACCES, ESTALE, EROFS, ENOLCK, ELOOP}) {
    const bool means_taken = std::string(step.call) == "lock" && number == EACCES;
    if (means_taken) continue;
    calls.fail(step.call, number);
    expect_error(step.run(files, folder.path()), number, step.call, folder.path() + step.path);
    EXPECT_TRUE(leaves_no_fresh_file()) << step.call;
  }
  EXPECT_EQ(step.run(files, folder.path()).error_number, 0) << "it works again afterwards";
}

INSTANTIATE_TEST_SUITE_P(Posix, EveryCall, ::testing::ValuesIn(steps()), [](const auto& info) {
  return std::string(info.param.name) + "_" + info.param.call;
});

TEST_F(PosixFaults, WritesOfOneByteMakeAWholeFile) {
  calls.most_bytes = 1;
  const std::string bytes = "forty-two bytes, of which each goes alone.";
  ASSERT_FALSE(files.write_exclusive(fresh, bytes));
  EXPECT_GE(calls.count("write"), static_cast<int>(bytes.size()));
  ASSERT_FALSE(files.overwrite(path, bytes));
  EXPECT_EQ(content(), bytes);
  std::string read_back;
  ASSERT_FALSE(files.read(fresh, read_back, nullptr));
  EXPECT_EQ(read_back, bytes);
  EXPECT_GE(calls.count("read"), static_cast<int>(bytes.size()));
}

TEST_F(PosixFaults, AWriteWithoutProgressEnds) {
  calls.most_bytes = 0;
  expect_error(files.write_exclusive(fresh, "new"), EIO, "write", fresh);
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(PosixFaults, ADiskThatFillsUpLeavesNoPartOfTheFile) {
  const std::string bytes(1000, 'x');
  for (const int room : {0, 1, 500, 999}) {
    calls.room = room;
    expect_error(files.write_exclusive(fresh, bytes), ENOSPC, "write", fresh);
    EXPECT_FALSE(std::filesystem::exists(fresh)) << room;
  }
  calls.room = 1000;
  EXPECT_FALSE(files.write_exclusive(fresh, bytes));
}

TEST_F(PosixFaults, ACloseThatReportsAFullDiskIsAnError) {
  for (const int number : {EDQUOT, EIO, ENOSPC}) {
    calls.fail("close", number);
    expect_error(files.write_exclusive(fresh, "new"), number, "close", fresh);
    EXPECT_FALSE(std::filesystem::exists(fresh));
  }
}

TEST_F(PosixFaults, AnInterruptedCloseHasClosedAndIsNotRepeated) {
  const int before = calls.count("close");
  calls.fail("close", EINTR);
  ASSERT_FALSE(files.write_exclusive(fresh, "new"));
  EXPECT_EQ(calls.count("close"), before + 1);
  EXPECT_TRUE(std::filesystem::exists(fresh));
}

TEST_F(PosixFaults, RenameThatFailsLeavesBothNamesAsTheyWere) {
  ASSERT_FALSE(files.write_exclusive(fresh, "new"));
  for (const int number : {EXDEV, EEXIST, ESTALE, EBUSY, ENOTEMPTY}) {
    calls.fail("rename", number);
    expect_error(files.rename(fresh, path), number, "rename", path);
    EXPECT_EQ(content(), "old");
    EXPECT_TRUE(std::filesystem::exists(fresh));
  }
}

TEST_F(PosixFaults, AFileOfAnotherWithThatNameStays) {
  expect_error(files.write_exclusive(path, "new"), EEXIST, "open", path);
  EXPECT_EQ(content(), "old");
}

TEST_F(PosixFaults, WithoutFreeDescriptorsEveryOpenIsNamed) {
  calls.fail("open", EMFILE, testing::FaultCalls::kAlways);
  expect_error(read_file(files, folder.path()), EMFILE, "open", path);
  expect_error(write_new(files, folder.path()), EMFILE, "open", fresh);
  expect_error(take_lock(files, folder.path()), EMFILE, "open", folder / "lock");
  expect_error(list_folder(files, folder.path()), EMFILE, "open", folder.path());
}

TEST_F(PosixFaults, AFileThatIsNotVisibleForAWhileIsAbsentThenThere) {
  calls.fail("open", ENOENT, 2);
  calls.fail("lstat", ENOENT, 2);
  FileStat stat;
  for (int i = 0; i < 2; ++i) {
    expect_error(read_file(files, folder.path()), ENOENT, "open", path);
    EXPECT_FALSE(files.stat(path, stat));
    EXPECT_FALSE(stat.exists);
  }
  EXPECT_FALSE(read_file(files, folder.path()));
  EXPECT_FALSE(files.stat(path, stat));
  EXPECT_TRUE(stat.exists);
}

TEST_F(PosixFaults, AFolderOnAReadOnlyFileSystemIsThereAlready) {
  calls.fail("mkdir", EROFS, testing::FaultCalls::kAlways);
  EXPECT_FALSE(files.make_directories(folder.path()));
  expect_error(files.make_directories(folder / "new"), EROFS, "mkdir", folder / "new");
}

TEST_F(PosixFaults, AListingThatBreaksOffIsAnError) {
  std::vector<std::string> names;
  calls.fail("readdir", EIO);
  expect_error(files.list(folder.path(), names), EIO, "readdir", folder.path());
  calls.fail("fdopendir", ENOMEM);
  expect_error(files.list(folder.path(), names), ENOMEM, "fdopendir", folder.path());
}

TEST_F(PosixFaults, ALockThatOthersHoldIsNoError) {
  for (const int number : {EAGAIN, EACCES}) {
    calls.fail("lock", number);
    std::unique_ptr<FileLock> held;
    EXPECT_FALSE(files.try_lock(folder / "lock", held));
    EXPECT_EQ(held, nullptr);
  }
}

}  // namespace
}  // namespace chord::base
