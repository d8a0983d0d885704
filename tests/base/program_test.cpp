// Programs run to their end: streams, exit codes, deadlines.
#include "src/base/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

namespace chord::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Result<ProgramRun> shell(const std::string& script, milliseconds deadline = seconds(20),
                         std::size_t most_bytes = 1 << 24) {
  return run_program("/bin/sh", {"-c", script}, deadline, most_bytes);
}

TEST(Program, GivesBothStreamsAndTheExitCode) {
  const auto run = shell("echo out; echo err >&2; exit 5");
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->out, "out\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_EQ(run->exit_code, 5);
  EXPECT_EQ(shell("kill -SEGV $$")->exit_code, 128 + SIGSEGV);
}

TEST(Program, ReadsMoreThanAPipeHoldsOfBothStreams) {
  const auto run = shell(
      "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789; "
      "echo 0123456789012345678901234567890123456789 >&2; i=$((i + 1)); done");
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->out.size(), 4000u * 41);
  EXPECT_EQ(run->err.size(), 4000u * 41);
}

TEST(Program, SeesNoInputAndNoEnvironment) {
  EXPECT_EQ(shell("read line; echo \"$line$HOME$PATH_OF_NOBODY\"")->out, "\n");
}

TEST(Program, ArgumentsAreNotSeenByAShell) {
  EXPECT_EQ(run_program("/bin/echo", {"$HOME; `ls`", "a b"}, seconds(20))->out,
            "$HOME; `ls` a b\n");
}

TEST(Program, IsEndedAtItsDeadlineWithItsChildren) {
  for (const char* script : {"/bin/sleep 60; echo late", "exec >&- 2>&-; /bin/sleep 60"}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto run = shell(script, milliseconds(100));
    ASSERT_FALSE(run.ok()) << script;
    EXPECT_EQ(run.error().found, "it was not done in time");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
  }
}

TEST(Program, ThatPrintsTooMuchIsAnError) {
  const auto run = shell("while :; do echo 0123456789; done", seconds(20), 5000);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().found, "it printed more than 5000 bytes");
}

TEST(Program, ThatIsNotThereIsAnError) {
  const auto run = run_program("/no/such/program", {}, seconds(20));
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::io_error);
  EXPECT_EQ(run.error().found, "No such file or directory");
  EXPECT_FALSE(is_program("/no/such/program"));
  EXPECT_FALSE(is_program("/tmp"));
  EXPECT_FALSE(is_program("/etc/passwd"));
  EXPECT_TRUE(is_program("/bin/sh"));
}

TEST(TemporaryFile, IsPrivateAndGoesAwayWithItsLastOwner) {
  std::string path;
  {
    auto made = TemporaryFile::write(std::string_view("a\0b", 3));
    ASSERT_TRUE(made.ok()) << made.error().message();
    const TemporaryFile file = std::move(*made);
    path = file.path();
    struct stat stat;
    ASSERT_EQ(::stat(path.c_str(), &stat), 0);
    EXPECT_EQ(stat.st_mode & 0777u, 0600u);
    EXPECT_EQ(stat.st_size, 3);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace chord::base
