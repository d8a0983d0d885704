// The log sink: levels, standard error, and users whose function throws.
#include "src/base/log.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/log_recorder.h"

namespace chord::base {
namespace {

TEST(Log, PassesMessagesOfItsLevelAndAbove) {
  testing::LogRecorder recorder;
  const LogSink log = make_log(LogLevel::warn, recorder.sink());
  for (const LogLevel level :
       {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error, LogLevel::off})
    log(level, name(level));
  EXPECT_TRUE(recorder.at(LogLevel::debug).empty());
  EXPECT_TRUE(recorder.at(LogLevel::info).empty());
  EXPECT_EQ(recorder.at(LogLevel::warn), std::vector<std::string>{"warn"});
  EXPECT_EQ(recorder.at(LogLevel::error), std::vector<std::string>{"error"});
  EXPECT_TRUE(recorder.at(LogLevel::off).empty());
}

TEST(Log, OffIsSilent) {
  testing::LogRecorder recorder;
  make_log(LogLevel::off, recorder.sink())(LogLevel::error, "lost");
  EXPECT_TRUE(recorder.at(LogLevel::error).empty());
}

TEST(Log, DefaultIsStandardErrorWithTheTextAsItIs) {
  ::testing::internal::CaptureStderr();
  make_log(LogLevel::warn, {})(LogLevel::warn, "100 % {} of it");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "chord warning: 100 % {} of it\n");
}

TEST(Log, AUsersExceptionGoesNoFurther) {
  const LogSink log = make_log(LogLevel::debug, [](LogLevel, std::string_view) {
    throw std::runtime_error("the user's fault");
  });
  EXPECT_NO_THROW(log(LogLevel::error, "message"));
}

}  // namespace
}  // namespace chord::base
