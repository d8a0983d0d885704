// Version, statuses, and whose the last error is.
#include <set>
#include <stdexcept>
#include <thread>

#include "chord/version.h"
#include "src/c_api/call.h"
#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

constexpr int kStatuses = CHORD_ERROR_OUT_OF_MEMORY + 1;

chord_status_t fail(Error error) {
  return c_api::guarded("chord_test", [&](const c_api::Call&) -> Status { return error; });
}

TEST(Version, IsThatOfTheHeaderAndOfTheCppFace) {
  EXPECT_EQ(chord_version(), CHORD_VERSION);
  EXPECT_EQ(chord_abi_version(), CHORD_ABI_VERSION);
  EXPECT_STREQ(chord_version_text(), kVersionText);
}

TEST(Statuses, EveryOneHasANameAndATextOfItsOwn) {
  std::set<std::string> names, texts;
  for (int i = 0; i < kStatuses; ++i) {
    names.insert(chord_status_name(static_cast<chord_status_t>(i)));
    texts.insert(chord_status_text(static_cast<chord_status_t>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kStatuses));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(kStatuses));
  EXPECT_EQ(names.count("unknown") + names.count("") + texts.count(""), 0u);
}

TEST(Statuses, AnotherValueIsUnknown) {
  const auto unknown = static_cast<chord_status_t>(kStatuses);
  EXPECT_STREQ(chord_status_name(unknown), "unknown");
  EXPECT_STREQ(chord_status_text(unknown), "no status of this library");
}

TEST(Statuses, MirrorEveryErrorCodeByName) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_STREQ(chord_status_name(fail({code, "asked", "found", "help"})), name(code));
  }
}

TEST(LastError, HoldsAllPartsAndTheWholeMessage) {
  const Error error{ErrorCode::io_error, "write a", "the disk is full", "free some"};
  EXPECT_EQ(fail(error), CHORD_ERROR_IO);
  const chord_error_t* last = chord_last_error();
  EXPECT_EQ(last->struct_size, sizeof(chord_error_t));
  EXPECT_EQ(last->status, CHORD_ERROR_IO);
  EXPECT_STREQ(last->asked, "chord_test: write a");
  EXPECT_EQ(last->found, error.found);
  EXPECT_EQ(last->help, error.help);
  EXPECT_STREQ(last->message, "chord_test: write a: the disk is full (free some)");
}

TEST(LastError, IsEmptyOnAThreadThatHasNotFailed) {
  fail({ErrorCode::corrupt, "a", "b", "c"});
  std::thread([] {
    const chord_error_t* last = chord_last_error();
    EXPECT_EQ(last->status, CHORD_SUCCESS);
    for (const char* text : {last->asked, last->found, last->help, last->message})
      EXPECT_STREQ(text, "");
  }).join();
}

TEST(LastError, BelongsToItsThread) {
  fail({ErrorCode::corrupt, "mine", "found", ""});
  std::thread([] {
    fail({ErrorCode::driver_error, "theirs", "found", ""});
    EXPECT_STREQ(chord_last_error()->asked, "chord_test: theirs");
  }).join();
  EXPECT_STREQ(chord_last_error()->asked, "chord_test: mine");
}

TEST(LastError, StaysWhenALaterCallSucceeds) {
  fail({ErrorCode::corrupt, "first", "found", ""});
  chord_model_t model = chord_model_init();
  REQUIRE_SUCCESS(chord_model_builtin("kimi-k2.5", &model));
  EXPECT_STREQ(chord_last_error()->asked, "chord_test: first");
}

TEST(LastError, IsReplacedByTheNextFailure) {
  fail({ErrorCode::corrupt, "first", "found", ""});
  fail({ErrorCode::not_found, "second", "found", ""});
  EXPECT_STREQ(chord_last_error()->asked, "chord_test: second");
  EXPECT_EQ(chord_last_error()->status, CHORD_ERROR_NOT_FOUND);
}

TEST(Guard, TurnsAnExceptionIntoAStatus) {
  const auto status = c_api::guarded("chord_test", [](const c_api::Call&) -> Status {
    throw std::runtime_error("a fault in the middle");
  });
  EXPECT_EQ(status, CHORD_ERROR_INTERNAL);
  EXPECT_TRUE(contains(chord_last_error()->message, "chord_test"));
  EXPECT_TRUE(contains(chord_last_error()->message, "a fault in the middle"));
}

TEST(Guard, TurnsAnythingThrownIntoAStatus) {
  EXPECT_EQ(c_api::guarded("chord_test", [](const c_api::Call&) -> Status { throw 7; }),
            CHORD_ERROR_INTERNAL);
}

TEST(Guard, HasAStatusForMemory) {
  EXPECT_EQ(
      c_api::guarded("chord_test", [](const c_api::Call&) -> Status { throw std::bad_alloc(); }),
      CHORD_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(chord_last_error()->status, CHORD_ERROR_OUT_OF_MEMORY);
  EXPECT_STREQ(chord_last_error()->asked, "chord_test");
}

}  // namespace
}  // namespace chord::c_api_test
