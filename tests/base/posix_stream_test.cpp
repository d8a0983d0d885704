// Files read and written piece by piece.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "src/base/posix_file_system.h"
#include "tests/support/temporary_folder.h"

namespace chord::base {
namespace {

class PosixStream : public ::testing::Test {
 protected:
  std::string read_all(const std::string& path) {
    std::unique_ptr<FileReader> reader;
    const FileError error = files.open_reader(path, reader);
    if (error) return error.message();
    std::string bytes;
    char buffer[3];
    for (std::size_t filled = 1; filled > 0;) {
      if (reader->read(buffer, sizeof buffer, filled)) return "failed";
      bytes.append(buffer, filled);
    }
    return bytes;
  }
  void write_all(const std::string& path) {
    std::unique_ptr<FileWriter> writer;
    ASSERT_FALSE(files.create_exclusive(path, writer));
    ASSERT_FALSE(writer->write("first "));
    ASSERT_FALSE(writer->write("second"));
    ASSERT_FALSE(writer->finish());
  }

  testing::TemporaryFolder folder;
  PosixFileSystem files;
};

TEST_F(PosixStream, PiecesComeBackInOrder) {
  write_all(folder / "file");
  EXPECT_EQ(read_all(folder / "file"), "first second");
}

TEST_F(PosixStream, WriterReplacesNothingAndFollowsNothing) {
  write_all(folder / "file");
  std::filesystem::create_symlink(folder / "none", folder / "link");
  std::unique_ptr<FileWriter> writer;
  EXPECT_EQ(files.create_exclusive(folder / "file", writer).error_number, EEXIST);
  EXPECT_EQ(files.create_exclusive(folder / "link", writer).error_number, EEXIST);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_F(PosixStream, WriterObeysTheUmask) {
  const mode_t before = ::umask(027);
  write_all(folder / "file");
  ::umask(before);
  FileStat stat;
  ASSERT_FALSE(files.stat(folder / "file", stat));
  EXPECT_EQ(stat.mode, 0640u);
}

TEST_F(PosixStream, ReaderFollowsALinkAndBlocksOnNoPipe) {
  write_all(folder / "file");
  std::filesystem::create_symlink(folder / "file", folder / "link");
  EXPECT_EQ(read_all(folder / "link"), "first second");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::unique_ptr<FileReader> reader;
  EXPECT_EQ(files.open_reader(folder / "pipe", reader).error_number, EINVAL);
  EXPECT_EQ(files.open_reader(folder.path(), reader).error_number, EINVAL);
  EXPECT_EQ(files.open_reader(folder / "none", reader).error_number, ENOENT);
  EXPECT_EQ(reader, nullptr);
}

}  // namespace
}  // namespace chord::base
